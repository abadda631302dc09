"""Patterns of topic names, in RE2's syntax: what KIP-848 lets members subscribe to.

Owns what a pattern stands for. The engine is the runtime's. Knows no group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.runtime.patterns import InvalidPatternError, matcher

if TYPE_CHECKING:
    from collections.abc import Iterable


class ResolvedRegex(msgspec.Struct, frozen=True):
    """What a pattern stands for."""

    topics: frozenset[str] = frozenset()
    version: int = 0
    """Of the metadata that was looked at."""
    timestamp_ms: int = 0


def check_pattern(pattern: str) -> None:
    """Raise `InvalidPatternError` for a text that is no pattern."""
    matcher(pattern)


def matching(pattern: str, names: Iterable[str]) -> frozenset[str]:
    """Return the names that match as a whole; none where the text is no pattern."""
    try:
        matches = matcher(pattern)
    except InvalidPatternError:
        return frozenset()
    return frozenset(name for name in names if matches(name))
