"""The due time of each record: an open-loop schedule, independent of the broker's speed.

Owns the arithmetic: record i of a step with r records a second is due i / r seconds after the step's start, whether
or not earlier records have been sent. Reads no clock and sends nothing: time is an argument.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

UNLIMITED = math.inf
"""No limit: such records are due when they are sent."""


@dataclass(frozen=True, slots=True)
class Step:
    """A rate of records for a period."""

    seconds: float = math.inf
    rate: float = UNLIMITED


@dataclass(frozen=True, slots=True)
class Portion:
    """Records that are due now."""

    count: int
    first_s: float | None = None
    """Due time of the first one, in seconds from the start; None without due times."""
    every_s: float = 0.0
    """Interval of their due times."""
    wait_s: float = 0.0
    """Time until the next record is due."""


class Schedule:
    """A sequence of steps, until they end or `records` are sent.

    Overdue records of a step are sent before the next step's.
    """

    def __init__(self, steps: Sequence[Step], records: int | None = None) -> None:
        self._steps = list(steps)
        self._left = math.inf if records is None else records
        self._begun_s = 0.0
        """Start of the first of `_steps`."""
        self._sent = 0
        """Records sent in that step."""

    def take(self, elapsed_s: float, most: int) -> Portion | None:
        """Return the records to send now, at most `most`, and count them as sent; None at the end."""
        while self._steps and self._left > 0:
            step = self._steps[0]
            if step.rate == UNLIMITED:
                if elapsed_s < self._begun_s:
                    return Portion(0, wait_s=self._begun_s - elapsed_s)
                if elapsed_s < self._begun_s + step.seconds:
                    return Portion(self._count(most))
            else:
                size = round(step.rate * step.seconds) if step.seconds < math.inf else math.inf
                if self._sent < size:
                    return self._paced(step.rate, size, elapsed_s, most)
            self._begun_s += self._steps.pop(0).seconds
            self._sent = 0
        return None

    def _paced(self, rate: float, size: float, elapsed_s: float, most: int) -> Portion:
        passed = elapsed_s - self._begun_s
        due = min(size, math.floor(passed * rate) + 1) if passed >= 0 else 0
        if due <= self._sent:
            return Portion(0, wait_s=self._begun_s + self._sent / rate - elapsed_s)
        first_s = self._begun_s + self._sent / rate
        return Portion(self._count(min(most, int(due - self._sent))), first_s, 1 / rate)

    def _count(self, count: int) -> int:
        count = int(min(count, self._left))
        self._left -= count
        self._sent += count
        return count
