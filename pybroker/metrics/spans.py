"""A span: the duration of one request, for the export.

Owns the types only. Must not know the producers or consumers of spans.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


class Span(NamedTuple):
    """The duration and outcome of one request."""

    name: str
    """The name of the API."""
    began_ns: int
    """Wall clock, since 1970."""
    ended_ns: int
    attributes: Mapping[str, str | int]
    error: str | None
    """The error of the whole request; None where only its items have errors, or nothing failed."""


class Spans(Protocol):
    """The receiver of spans. Called on the event loop's thread."""

    def take(self, span: Span, /) -> None:
        """Queue a span without blocking."""
