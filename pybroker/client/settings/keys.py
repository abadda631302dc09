"""Declarations of keys that this client cannot honour in full: each holds the values whose meaning the client keeps.

Owns the sentences by which other values are refused. Whatever Kafka's clients know and this one does not do is declared
by one of these, so that a setting is never passed over in silence.
"""

from __future__ import annotations

from pybroker.config.key import Key, Kind


def fixed(default: str | None, doc: str, *, only: tuple[str, ...] = (), because: str) -> Key[str | None]:
    """Declare a key that may hold these texts, in any case, or be absent; another is refused with the reason.

    `because` goes on after "must be ...: ".
    """
    allowed = " or ".join(text or "empty" for text in only) or "absent"
    return Key(
        Kind.STRING,
        default,
        doc,
        parse=str,
        check=lambda value: value is None or value.lower() in {text.lower() for text in only},
        expected=f"{allowed}: {because}",
        is_fixed=True,
    )


def no_classes(doc: str, because: str, *, only: tuple[str, ...] = ("",)) -> Key[str | None]:
    """Declare a list of Java classes, which has to be empty, or one of the texts of `only`."""
    return fixed("", doc, only=only, because=because)
