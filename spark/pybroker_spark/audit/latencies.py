"""Latencies of whole arrays in the slots of an HDR histogram with three digits, with exact counts and merges.

A latency is represented by the lowest value of its slot. Values below 2048 us have a slot each; above, slots have a
precision of 11 bits. These are the slots of `pybroker.client.LatencyHistogram`, which computes the percentiles.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pybroker.client import LatencyHistogram

_BITS = 11


def slots_of(latencies_us: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the lowest value of each latency's slot. Latencies must not be negative."""
    _, exponents = np.frexp(latencies_us.astype(np.float64))
    shifts = np.maximum(exponents.astype(np.int64) - _BITS, 0)
    return (latencies_us >> shifts) << shifts


@dataclass(slots=True)
class Latencies:
    """Record counts by latency slot."""

    slots: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    counts: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    negative: int = 0
    """Records with a timestamp before their send time, because clocks differ. Their latency counts as 0."""

    def add(self, latencies_us: NDArray[np.int64]) -> None:
        """Count an array of latencies."""
        early = latencies_us < 0
        self.negative += int(early.sum())
        slots, counts = np.unique(slots_of(np.where(early, 0, latencies_us)), return_counts=True)
        self._merge(slots, counts.astype(np.int64))

    def merge(self, other: Latencies) -> None:
        """Add the counts of another one."""
        self.negative += other.negative
        self._merge(other.slots, other.counts)

    def histogram(self) -> LatencyHistogram:
        """Return the histogram, for percentiles."""
        histogram = LatencyHistogram()
        for slot, count in zip(self.slots.tolist(), self.counts.tolist(), strict=True):
            histogram.record(slot, count)
        return histogram

    def _merge(self, slots: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        union, places = np.unique(np.concatenate((self.slots, slots)), return_inverse=True)
        total = np.zeros(len(union), np.int64)
        np.add.at(total, places, np.concatenate((self.counts, counts)))
        self.slots, self.counts = union, total
