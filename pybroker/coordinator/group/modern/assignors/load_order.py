"""Members in the order of their load, while partitions move between them.

Owns the answers to "who has least" and "who has most" without sorting again after each move: members of equal load form
a level that is walked through once, each walked one gaining or losing one, and then the next level begins. Knows
neither topics nor partitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class LoadOrder:
    """Some members by load, equal ones by place.

    Rule 1: the member that `next_least_loaded` names gains one before it is asked again, and the member that
    `next_most_loaded` names loses one or is excluded. Rule 2: a member is named by one of the two only, as `is_level`
    is asked in between.
    """

    def __init__(self, loads: Sequence[int], members: Sequence[int]) -> None:
        """`loads` is the caller's own list, by place, and changes as the caller moves partitions."""
        self._loads = loads
        self._members = sorted(members, key=lambda place: (loads[place], place))
        # Members below `_low_end` have `_low_level` or one more; those from `_next_low` on are still to gain.
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
        """How many more the most loaded has than the least loaded, before anything is moved."""
        return self._loads[self._members[-1]] - self._loads[self._members[0]]

    @property
    def is_level(self) -> bool:
        """Whether the two levels that are walked through have met."""
        return self._high_level - self._low_level <= 1

    def next_least_loaded(self) -> int:
        """Name the member that is to gain one."""
        if self._next_low >= self._low_end:
            self._low_level += 1
            while self._low_end < len(self._members) and self._load(self._low_end) == self._low_level:
                self._low_end += 1
            self._next_low = 0
        place = self._members[self._next_low]
        self._next_low += 1
        return place

    def next_most_loaded(self) -> int | None:
        """Name the member that is to lose one; None when all are excluded."""
        if self._next_high < self._high_start:
            if self._high_end <= self._high_start > 0:
                # All of the level are excluded: go on where the next ones are.
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
        """Name the member that `next_most_loaded` named last no more: it has nothing that could move."""
        named, last = self._next_high + 1, self._high_end - 1
        self._members[named], self._members[last] = self._members[last], self._members[named]
        self._high_end = last

    def _load(self, index: int) -> int:
        return self._loads[self._members[index]]
