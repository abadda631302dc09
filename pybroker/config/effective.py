"""The settings of a node before its start, each with the source of its value.

Owns the precedence of sources: an override, the file, a synonym key, the default. Must not know dynamic configs of a
running broker (DescribeConfigs returns these).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pybroker.config.key import Kind
from pybroker.config.shown import is_secret, shown_text
from pybroker.config.topic import broker_chain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pybroker.config.broker import BrokerConfig

OVERRIDE, FILE, SYNONYM, DEFAULT = "override", "file", "synonym", "default"
_SAME = {"node.id": "broker.id", "broker.id": "node.id"}


class Setting(NamedTuple):
    """One key with its value for display, None where it has none."""

    name: str
    value: str | None
    source: str
    line: int | None
    """Line number in the file, for a value from the file."""
    synonym: str | None
    """The synonym key whose value applies."""
    secret: bool
    type: str


def effective_settings(
    config: BrokerConfig, lines: Mapping[str, int], overrides: Mapping[str, str]
) -> Iterator[Setting]:
    """Yield every setting by name, including those of single listeners and unknown ones.

    `lines` are the keys of the file, `overrides` those that override it.
    """
    found = {name: _setting(config, name, lines, overrides) for name in config.keys}
    texts = {**config.of_listeners, **config.of_mechanisms}
    for name, text in texts.items():
        source, line = _place(name, lines, overrides)
        found[name] = Setting(name, shown_text(name, text), source, line, None, is_secret(name), "string")
    yield from (found[name] for name in sorted(found))


def _setting(config: BrokerConfig, name: str, lines: Mapping[str, int], overrides: Mapping[str, str]) -> Setting:
    chain = broker_chain(name)
    speaks = next((key for key in chain if key.name in config.given), None)
    if speaks is None:
        speaks = next((key for key in chain if key.default is not None), config.keys[name])
    value = speaks.text_of(getattr(config, speaks.attribute))
    source, line = _place(speaks.name, lines, overrides)
    synonym = speaks.name if speaks.name != name else None
    same = _SAME.get(name)
    if same is not None and source == DEFAULT and name in config.given:
        source, line = _place(same, lines, overrides)
        synonym = same
    if synonym is not None and source == DEFAULT:
        source = SYNONYM
    kind: Kind = config.keys[name].kind
    return Setting(name, shown_text(name, value), source, line, synonym, is_secret(name), kind.name.lower())


def _place(name: str, lines: Mapping[str, int], overrides: Mapping[str, str]) -> tuple[str, int | None]:
    if name in overrides:
        return OVERRIDE, None
    return (FILE, lines[name]) if name in lines else (DEFAULT, None)
