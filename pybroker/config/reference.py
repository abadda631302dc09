"""Prints docs/reference/configs.md from the declarations: `python -m pybroker.config.reference`.

Owns the format of that page, and none of its content. Runs only when documentation is generated.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from pybroker.config.broker import BrokerConfig
from pybroker.config.group import GroupConfig, group_synonym
from pybroker.config.topic import TopicConfig, broker_synonyms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pybroker.config.key import Key

_HEAD = """# Configuration

Made by `python -m pybroker.config.reference`; do not edit. Names, types and defaults are Kafka's unless a
description states otherwise. *Accepted* keys are checked and listed, but have no effect yet. At its start, the
broker logs a key that is not listed here, and ignores it.
"""

HEADER = ("| key | type | default | valid | notes | meaning |", "|---|---|---|---|---|---|")


def lines() -> Iterator[str]:
    """Yield the lines of the page."""
    yield _HEAD
    yield "## Broker\n"
    yield from rows(BrokerConfig.keys.values())
    yield "\n## Topic\n"
    yield from HEADER
    for name in sorted(TopicConfig.keys):
        key = TopicConfig.keys[name]
        behind = ", ".join(f"`{synonym.name}`" for synonym in broker_synonyms(name))
        notes = [f"inherits {behind}"] if behind else []
        yield _row(key, [*notes, *_notes(key)], inherits=bool(behind))
    yield "\n## Group\n"
    yield from HEADER
    for name in sorted(GroupConfig.keys):
        yield _row(GroupConfig.keys[name], [f"inherits `{group_synonym(name).name}`"], inherits=True)


def rows(keys: Iterable[Key[Any]]) -> Iterator[str]:
    """Yield the lines of a table of keys, sorted by name."""
    yield from HEADER
    for key in sorted(keys, key=lambda key: key.name):
        yield _row(key, _notes(key))


def _notes(key: Key[Any]) -> list[str]:
    notes = []
    if key.ours:
        notes.append(f"not in Kafka: {key.ours}")
    if not key.acts:
        notes.append("accepted")
    return notes


def _row(key: Key[Any], notes: list[str], *, inherits: bool = False) -> str:
    default = None if inherits else key.text_of(key.default)
    shown = "inherited" if inherits else "none" if default is None else f"`{default}`" if default else "empty"
    row = [f"`{key.name}`", key.kind.name.lower(), shown, key.expected, "; ".join(notes), key.doc]
    return "| " + " | ".join(row).replace("<", "&lt;") + " |"


def main() -> None:
    """Print the page."""
    sys.stdout.write("\n".join(lines()) + "\n")


if __name__ == "__main__":
    main()
