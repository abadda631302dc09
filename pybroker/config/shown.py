"""Settings for display, without secrets.

Owns which keys are secret: those declared as such, also for one listener or SASL mechanism, and unknown keys whose
names indicate a secret. Must not know where texts are displayed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pybroker.config.broker import ID_NAMES, BrokerConfig
from pybroker.config.dynamic import key_of
from pybroker.config.key import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

HIDDEN = "[hidden]"
_SECRET = re.compile(r"password|secret|credential|token|jaas|(?:^|\.)key$", re.IGNORECASE)


def shown_text(name: str, text: str | None) -> str | None:
    """Return a setting's text for display; a secret is hidden."""
    return HIDDEN if text is not None and is_secret(name) else text


def is_secret(name: str) -> bool:
    """Return whether the text of a key is never displayed."""
    key = key_of(name, BrokerConfig.keys)
    return key.kind is Kind.PASSWORD if key is not None else bool(_SECRET.search(name))


def changed_texts(config: BrokerConfig) -> Iterator[tuple[str, str]]:
    """Yield the given values that differ from defaults, by their given names, for display."""
    derived = ID_NAMES - config.id_names
    for name, text in sorted({**config.given, **config.of_listeners, **config.of_mechanisms}.items()):
        if name in derived:
            continue
        key = config.keys.get(name)
        if key is None or getattr(config, key.attribute) != key.default:
            yield name, shown_text(name, text) or ""
