"""Settings of a test: texts by Kafka's names, and keyword arguments of any type."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def texts(properties: Mapping[str, str] | None, settings: Mapping[str, object]) -> dict[str, str]:
    """Return both as texts by Kafka's names."""
    return {**(properties or {}), **{name.replace("_", "."): _text(value) for name, value in settings.items()}}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
