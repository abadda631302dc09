"""Settings as they may be shown: every text but secrets.

Owns what counts as a secret: every key that is declared as one, for one listener or SASL mechanism too, and unknown
keys whose names say so. Must not know where texts are shown.
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
    """Return a setting's text as it may be shown."""
    return HIDDEN if text is not None and is_secret(name) else text


def is_secret(name: str) -> bool:
    """Return whether the text of a key is shown to nobody."""
    key = key_of(name, BrokerConfig.keys)
    return key.kind is Kind.PASSWORD if key is not None else bool(_SECRET.search(name))


def changed_texts(config: BrokerConfig) -> Iterator[tuple[str, str]]:
    """Yield what was given and is no default, by the name by which it was given, as it may be shown."""
    derived = ID_NAMES - config.id_names
    for name, text in sorted({**config.given, **config.of_listeners, **config.of_mechanisms}.items()):
        if name in derived:
            continue
        key = config.keys.get(name)
        if key is None or getattr(config, key.attribute) != key.default:
            yield name, shown_text(name, text) or ""
