"""A histogram of durations in the control plane.

Owns the bounds of the histogram: the powers of two from 16 µs to 67 s, as in the data plane's histograms
(`native/net/src/measures/times.rs:bounds_us`). Must not know the measured operation. One thread records, and any thread
may read.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import accumulate
from time import perf_counter_ns
from typing import TYPE_CHECKING

from pybroker.metrics.metric import Histogram

if TYPE_CHECKING:
    from collections.abc import Iterator

_FIRST, _LAST = 4, 26
"""Powers of two of the first and the last bound, in microseconds."""
BOUNDS = tuple((1 << power) / 1e6 for power in range(_FIRST, _LAST + 1))
_NANOSECONDS = 1e9


class Durations:
    """Counts the recorded durations of one kind of operation, by bucket of the histogram."""

    __slots__ = ("_counts", "_total_ns")

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS) + 1)
        self._total_ns = 0

    def note(self, duration_ns: int) -> None:
        """Record a duration, in nanoseconds."""
        bits = (duration_ns // 1000).bit_length()
        self._counts[min(max(bits, _FIRST), _LAST + 1) - _FIRST] += 1
        self._total_ns += duration_ns

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Record the duration of the block, unless it raises."""
        began = perf_counter_ns()
        yield
        self.note(perf_counter_ns() - began)

    def histogram(self) -> Histogram:
        """Return the histogram of all durations."""
        return Histogram(BOUNDS, tuple(accumulate(self._counts)), self._total_ns / _NANOSECONDS)
