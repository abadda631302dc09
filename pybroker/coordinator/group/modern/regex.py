"""Regular expressions of topic names, in RE2's syntax, that members may subscribe to (KIP-848).

Owns the resolution of a pattern. The runtime owns the engine. Knows no group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.runtime.patterns import InvalidPatternError, matcher

if TYPE_CHECKING:
    from collections.abc import Iterable


class ResolvedRegex(msgspec.Struct, frozen=True):
    """The topics that match a pattern."""

    topics: frozenset[str] = frozenset()
    version: int = 0
    """Version of the metadata that was used."""
    timestamp_ms: int = 0


def check_pattern(pattern: str) -> None:
    """Raise `InvalidPatternError` for an invalid pattern."""
    matcher(pattern)


def matching(pattern: str, names: Iterable[str]) -> frozenset[str]:
    """Return the names that match as a whole; none if the pattern is invalid."""
    try:
        matches = matcher(pattern)
    except InvalidPatternError:
        return frozenset()
    return frozenset(name for name in names if matches(name))
