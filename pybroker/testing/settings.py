"""Settings as a test gives them: by Kafka's names as texts, and by keyword as whatever value."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def texts(properties: Mapping[str, str] | None, settings: Mapping[str, object]) -> dict[str, str]:
    """Return both by Kafka's names. Raises TypeError for a property that is no text."""
    given = dict(properties or {})
    for key, value in given.items():
        if not isinstance(key, str) or not isinstance(value, str):
            keyword = f", or the keyword {key.replace('.', '_')}={value!r}" if isinstance(key, str) else ""
            raise TypeError(
                f"properties={{{key!r}: {value!r}}}: must be texts: {{{str(key)!r}: {_text(value)!r}}}{keyword}"
            )
    return {**given, **{name.replace("_", "."): _text(value) for name, value in settings.items()}}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
