"""Segments of time: data of windowed and versioned stores that expires a segment at a time."""

from __future__ import annotations

import struct

from pybroker.streams.state.ordered_map import OrderedMap
from pybroker.streams.state.store_maps import StoreMaps
from pybroker.streams.windows import MAX_TIMESTAMP

NUMBER = struct.Struct(">Q")
FIRST_NUMBER = -(1 << 63)
"""The least number of a segment. A prefix has the difference from it, so that bytes have the order of numbers."""


class Segments:
    """The live segments of a store, by number. A segment covers `interval_ms` (`AbstractSegments`).

    A segment is live while its last instant is within `retention_ms` of the stream time of the store. Rows older than
    the retention can therefore exist in the oldest segment. Reads skip those rows.

    A segment is the ordered map of one prefix: the byte of the index and the 8-byte number. In a database the live
    segments are the prefixes that have rows, so `open` finds them there and they need no list of their own.
    """

    def __init__(self, maps: StoreMaps, index: bytes, retention_ms: int, interval_ms: int) -> None:
        self._maps = maps
        self._index = index
        self._retention_ms = retention_ms
        self._interval_ms = interval_ms
        self._segments: dict[int, OrderedMap] = {}

    def open(self) -> None:
        """Find the segments of an open database."""
        for prefix in self._maps.prefixes(self._index, len(self._index) + NUMBER.size):
            self._create(NUMBER.unpack_from(prefix, len(self._index))[0] + FIRST_NUMBER)

    def number(self, timestamp: int) -> int:
        """Return the segment of a timestamp. The division truncates towards zero, as Java's does."""
        return timestamp // self._interval_ms if timestamp >= 0 else -(-timestamp // self._interval_ms)

    def find(self, timestamp: int) -> OrderedMap | None:
        """Return the segment of a timestamp, or None if it does not exist."""
        return self._segments.get(self.number(timestamp))

    def create_if_live(self, number: int, stream_time: int) -> OrderedMap | None:
        """Return a segment, created if necessary, and remove expired segments. Returns None if it is expired."""
        least = self.number(stream_time - self._retention_ms)
        if number < least:
            return None
        segment = self._segments.get(number)
        if segment is None:
            segment = self._create(number)
        self.remove_expired(stream_time)
        return segment

    def remove_expired(self, stream_time: int) -> None:
        """Remove the segments that the stream time has passed by the retention."""
        least = self.number(stream_time - self._retention_ms)
        for number in [number for number in self._segments if number < least]:
            self._segments.pop(number).clear()

    def between(self, start: int, end: int = MAX_TIMESTAMP, forward: bool = True) -> list[tuple[int, OrderedMap]]:
        """Return numbers and segments of the timestamps from `start` to `end`, in order of time."""
        first, last = self.number(start), self.number(end)
        numbers = sorted((number for number in self._segments if first <= number <= last), reverse=not forward)
        return [(number, self._segments[number]) for number in numbers]

    def close(self) -> None:
        """Release all segments. Those of a database stay there."""
        self._segments.clear()

    def _create(self, number: int) -> OrderedMap:
        segment = self._segments[number] = self._maps.map(self._index + NUMBER.pack(number - FIRST_NUMBER))
        return segment
