"""Members in the order of their load, while partitions move between them.

Owns the least and the most loaded member, without sorting again after each move. Members of equal load form a level.
Each member of the level gains or loses one partition in order, and then the next level begins. Knows neither topics nor
partitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class LoadOrder:
    """Some members by load, equal ones by place.

    Rule 1: the member that `next_least_loaded` returns gains one partition before the next call, and the member that
    `next_most_loaded` returns loses one or is excluded. Rule 2: a member is returned by only one of the two methods,
    because callers check `is_level` in between.
    """

    def __init__(self, loads: Sequence[int], members: Sequence[int]) -> None:
        """`loads` is the caller's own list, by place, which the caller updates when partitions move."""
        self._loads = loads
        self._members = sorted(members, key=lambda place: (loads[place], place))
        # Members before `_low_end` have `_low_level` or one more; those from `_next_low` on gain one next.
        self._low_level = loads[self._members[0]] - 1
        self._low_end = 0
        self._next_low = 0
        # Members from `_high_start` to `_high_end` have `_high_level` or one less; down to `_next_high` they lost one.
        # Members from `_high_end` on are excluded.
        self._high_level = loads[self._members[-1]] + 1
        self._high_start = self._high_end = len(self._members)
        self._next_high = len(self._members) - 1

    @property
    def spread(self) -> int:
        """The difference between the most and the least loaded member, before any move."""
        return self._loads[self._members[-1]] - self._loads[self._members[0]]

    @property
    def is_level(self) -> bool:
        """Whether the low level and the high level have met."""
        return self._high_level - self._low_level <= 1

    def next_least_loaded(self) -> int:
        """Return the member that gains one partition next."""
        if self._next_low >= self._low_end:
            self._low_level += 1
            while self._low_end < len(self._members) and self._load(self._low_end) == self._low_level:
                self._low_end += 1
            self._next_low = 0
        place = self._members[self._next_low]
        self._next_low += 1
        return place

    def next_most_loaded(self) -> int | None:
        """Return the member that loses one partition next; None if all are excluded."""
        if self._next_high < self._high_start:
            if self._high_end <= self._high_start > 0:
                # All members of the level are excluded: continue with the next ones.
                self._high_level = self._load(self._high_start - 1)
            else:
                self._high_level -= 1
            while self._high_start > 0 and self._load(self._high_start - 1) == self._high_level:
                self._high_start -= 1
            self._next_high = self._high_end - 1
        if self._next_high < 0:
            return None
        place = self._members[self._next_high]
        self._next_high -= 1
        return place

    def exclude_most_loaded(self) -> None:
        """Exclude the member that `next_most_loaded` returned last: none of its partitions can move."""
        named, last = self._next_high + 1, self._high_end - 1
        self._members[named], self._members[last] = self._members[last], self._members[named]
        self._high_end = last

    def _load(self, index: int) -> int:
        return self._loads[self._members[index]]
