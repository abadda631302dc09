"""A span: what one request took, as the export gets it.

Owns the shape alone. Must not know who makes spans, nor who gets them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


class Span(NamedTuple):
    """What one request took."""

    name: str
    """Of the API."""
    began_ns: int
    """Wall clock, since 1970."""
    ended_ns: int
    attributes: Mapping[str, str | int]
    error: str | None
    """Why the whole request failed; None where its items have their own errors, or none."""


class Spans(Protocol):
    """Who gets them. Called on the event loop's thread."""

    def take(self, span: Span, /) -> None:
        """Take a span; quick, and never waits."""
