"""The sequences of one producer in one partition: counted over pieces of the log, exact when merged.

Of the sequences in offset order s1, s2 ... a piece keeps
  - the number of records,
  - `seen`: the set of sequences, as intervals,
  - `risen`: the set of those that were greater than all before them.

    duplicated = records - |seen|
    reordered  = |seen| - |risen|     first occurrences behind a greater sequence
    lost       = {0 .. expected-1} - seen

For pieces A and then B: seen = seen A + seen B; risen = risen A + (risen B above the greatest of A). That is
associative, so pieces may be merged in any grouping as long as their order is kept. Memory: 16 bytes for each gap.
Must not know Arrow or Spark.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pybroker_spark.audit import intervals
from pybroker_spark.audit.intervals import NOTHING, Intervals


@dataclass(frozen=True, slots=True, eq=False)
class Sequences:
    """One producer's sequences in a piece of a partition."""

    records: int = 0
    seen: Intervals = field(default_factory=lambda: NOTHING)
    risen: Intervals = field(default_factory=lambda: NOTHING)

    @classmethod
    def of(cls, numbers: NDArray[np.int64]) -> Sequences:
        """Build it from sequences in offset order."""
        count = len(numbers)
        if count == 0:
            return cls()
        first, last = int(numbers[0]), int(numbers[-1])
        steps = np.diff(numbers)
        if last - first == count - 1 and (steps == 1).all():  # no error
            whole = np.array([[first, last]], np.int64)
            return cls(count, whole, whole)
        if (steps > 0).all():
            seen = intervals.of_sorted(numbers)
            return cls(count, seen, seen)
        risen = np.empty(count, np.bool_)
        risen[0] = True
        risen[1:] = numbers[1:] > np.maximum.accumulate(numbers)[:-1]
        return cls(count, intervals.of_sorted(np.sort(numbers)), intervals.of_sorted(numbers[risen]))

    def then(self, later: Sequences) -> Sequences:
        """Merge this piece with the one behind it."""
        if self.records == 0 or later.records == 0:
            return later if self.records == 0 else self
        risen = intervals.above(later.risen, int(self.seen[-1, 1]))
        return Sequences(
            self.records + later.records,
            intervals.union(self.seen, later.seen),
            intervals.union(self.risen, risen),
        )

    @property
    def end(self) -> int:
        """Return one more than the greatest sequence."""
        return int(self.seen[-1, 1]) + 1 if self.records else 0

    @property
    def duplicated(self) -> int:
        """Return the number of records beyond the first of each sequence."""
        return self.records - intervals.size(self.seen)

    @property
    def reordered(self) -> int:
        """Return the number of sequences that first occurred behind a greater one."""
        return intervals.size(self.seen) - intervals.size(self.risen)

    def lost(self, expected: int | None = None) -> Intervals:
        """Return the missing sequences: below the greatest one, or below `expected`."""
        return intervals.gaps(self.seen, self.end if expected is None else max(expected, self.end))

    def unsent(self, expected: int) -> int:
        """Return the number of sequences in the log at or above `expected`."""
        return intervals.size(intervals.above(self.seen, expected - 1))
