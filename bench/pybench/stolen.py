"""CPU time that the hypervisor took from this machine: `steal` in /proc/stat.

Owns the stolen time of a measurement, and the decision to repeat a round. Knows no broker and no row.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_STEAL = 8
"""Index of the field in the first line of /proc/stat, counting its name (proc_stat(5))."""
_MOST = 0.005
"""Tolerated share of all cores' time. From 1 % on, a p99 of a few ms is caused by the host."""
_RESOLUTION_S = 1 / _TICKS


@dataclass(frozen=True, slots=True)
class Stolen:
    """The stolen time of one measurement."""

    lost_s: float
    """Stolen seconds, summed over all cores."""
    share: float
    """Share of the time of all cores."""

    @property
    def is_much(self) -> bool:
        """Whether the host distorted the measurement. A single tick is below the resolution."""
        return self.share > _MOST and self.lost_s > 1.5 * _RESOLUTION_S


def stolen_s(stat: Path = Path("/proc/stat")) -> float:
    """Return the stolen seconds of all cores since boot, 0 if the kernel does not count them."""
    try:
        with stat.open(encoding="ascii") as lines:
            fields = next(lines).split()
    except (OSError, StopIteration):
        return 0.0
    return int(fields[_STEAL]) / _TICKS if len(fields) > _STEAL else 0.0


def stolen_since(before_s: float, elapsed_s: float) -> Stolen:
    """Return the stolen time since `before_s` was read, `elapsed_s` ago."""
    lost_s = max(0.0, stolen_s() - before_s)
    return Stolen(lost_s, lost_s / (elapsed_s * (os.cpu_count() or 1)) if elapsed_s > 0 else 0.0)


class Again:
    """Decides which rounds of a row are repeated: disturbed ones, at most as many as there are counted rounds."""

    def __init__(self, rounds: int) -> None:
        """`rounds` is the number of counted rounds."""
        self._left = rounds
        self.taken = 0

    def wants(self, turns: Iterable[Stolen]) -> bool:
        """Return whether to repeat this round. One disturbed contestant is enough."""
        if self._left == 0 or not any(turn.is_much for turn in turns):
            return False
        self._left -= 1
        self.taken += 1
        return True
