"""Declarations of keys that this client does not fully support: each accepts only supported values.

Owns the messages that reject other values. One of these functions declares every unsupported key
of Kafka's clients, so that no setting is silently ignored.
"""

from __future__ import annotations

from pybroker.config.key import Key, Kind


def fixed(default: str | None, doc: str, *, only: tuple[str, ...] = (), because: str) -> Key[str | None]:
    """Declare a key that may have one of these texts, in any case, or be absent. Other values are rejected with the
    reason.

    `because` continues the text "must be ...: ".
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
    """Declare a list of Java classes, which must be empty, or one of the texts of `only`."""
    return fixed("", doc, only=only, because=because)
