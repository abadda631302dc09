"""Processor time that a hypervisor gave to others while this machine wanted it: `steal` in /proc/stat.

Owns what a turn lost by it, and which rounds are taken again for it. Knows no broker and no row.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_STEAL = 8
"""Field of the first line of /proc/stat, its name counted (proc_stat(5))."""
_MOST = 0.005
"""Share of all cores' time: at 1 % and more a p99 of a few ms is that of the host."""
_RESOLUTION_S = 1 / _TICKS


@dataclass(frozen=True, slots=True)
class Stolen:
    """What a turn lost."""

    lost_s: float
    """Seconds that all cores together wanted and did not get."""
    share: float
    """Of the time of all cores."""

    @property
    def is_much(self) -> bool:
        """Whether the turn says more about the host than about what was measured; one tick says nothing."""
        return self.share > _MOST and self.lost_s > 1.5 * _RESOLUTION_S


def stolen_s(stat: Path = Path("/proc/stat")) -> float:
    """Seconds that the hypervisor has taken from all cores since the start; 0 where nobody counts them."""
    try:
        with stat.open(encoding="ascii") as lines:
            fields = next(lines).split()
    except (OSError, StopIteration):
        return 0.0
    return int(fields[_STEAL]) / _TICKS if len(fields) > _STEAL else 0.0


def stolen_since(before_s: float, elapsed_s: float) -> Stolen:
    """What was taken since `before_s` was read, `elapsed_s` ago."""
    lost_s = max(0.0, stolen_s() - before_s)
    return Stolen(lost_s, lost_s / (elapsed_s * (os.cpu_count() or 1)) if elapsed_s > 0 else 0.0)


class Again:
    """Which rounds of a row are taken again: disturbed ones, as often as there are rounds to count and no more."""

    def __init__(self, rounds: int) -> None:
        """`rounds` is how many are counted."""
        self._left = rounds
        self.taken = 0

    def wants(self, turns: Iterable[Stolen]) -> bool:
        """Whether the round of these turns is to be taken again. One of a row's contestants spoils it for all."""
        if self._left == 0 or not any(turn.is_much for turn in turns):
            return False
        self._left -= 1
        self.taken += 1
        return True
