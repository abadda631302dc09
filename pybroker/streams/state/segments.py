"""Segments of time: data of windowed and versioned stores that expires a segment at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from pybroker.streams.windows import MAX_TIMESTAMP

S = TypeVar("S")


class Segments(Generic[S]):
    """The live segments of a store, by number. A segment covers `interval_ms` (`AbstractSegments`).

    A segment is live while its last instant is within `retention_ms` of the stream time of the store. Rows older than
    the retention can therefore exist in the oldest segment. Reads skip those rows.
    """

    def __init__(self, retention_ms: int, interval_ms: int, create: Callable[[], S]) -> None:
        self._retention_ms = retention_ms
        self._interval_ms = interval_ms
        self._create = create
        self._segments: dict[int, S] = {}

    def number(self, timestamp: int) -> int:
        """Return the segment of a timestamp. The division truncates towards zero, as Java's does."""
        return timestamp // self._interval_ms if timestamp >= 0 else -(-timestamp // self._interval_ms)

    def find(self, timestamp: int) -> S | None:
        """Return the segment of a timestamp, or None if it does not exist."""
        return self._segments.get(self.number(timestamp))

    def create_if_live(self, number: int, stream_time: int) -> S | None:
        """Return a segment, created if necessary, and remove expired segments. Returns None if it is expired."""
        least = self.number(stream_time - self._retention_ms)
        if number < least:
            return None
        segment = self._segments.get(number)
        if segment is None:
            segment = self._segments[number] = self._create()
        self.remove_expired(stream_time)
        return segment

    def remove_expired(self, stream_time: int) -> None:
        """Remove the segments that the stream time has passed by the retention."""
        least = self.number(stream_time - self._retention_ms)
        for number in [number for number in self._segments if number < least]:
            del self._segments[number]

    def between(self, start: int, end: int = MAX_TIMESTAMP, forward: bool = True) -> list[tuple[int, S]]:
        """Return numbers and segments of the timestamps from `start` to `end`, in order of time."""
        first, last = self.number(start), self.number(end)
        numbers = sorted((number for number in self._segments if first <= number <= last), reverse=not forward)
        return [(number, self._segments[number]) for number in numbers]

    def clear(self) -> None:
        """Remove all segments."""
        self._segments.clear()
