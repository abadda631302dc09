"""What is done to a cluster, drawn from a seed: which fault comes next, to which brokers, and for how long.

Owns the schedule: the same seed, brokers and kinds make the same faults in the same order. Must not do any of them.
"""

from __future__ import annotations

import enum
import random
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple


class Kind(enum.Enum):
    """A way in which a cluster is disturbed."""

    KILL = "kill -9"
    KILL_ALL = "kill -9 of all"
    PAUSE = "SIGSTOP"
    RESTART = "clean restart"
    ROLLING = "rolling restart"
    REASSIGN = "reassignment"
    ELECT = "preferred leaders"
    PARTITION = "no packets to and from the others"
    PARTITION_OUT = "no packets to the others"
    PARTITION_IN = "no packets from the others"
    PARTITION_CLIENTS = "no packets to and from clients"
    PARTITION_PAIR = "no packets between two brokers"
    FULL_DISK = "full disk"


PROCESS_KINDS = (Kind.KILL, Kind.KILL_ALL, Kind.PAUSE, Kind.RESTART, Kind.ROLLING, Kind.REASSIGN, Kind.ELECT)
NETWORK_KINDS = (
    Kind.PARTITION,
    Kind.PARTITION_OUT,
    Kind.PARTITION_IN,
    Kind.PARTITION_CLIENTS,
    Kind.PARTITION_PAIR,
)
DISK_KINDS = (Kind.FULL_DISK,)

_DURATIONS_S = {
    Kind.KILL: (0.0, 12.0),
    Kind.PAUSE: (0.5, 14.0),
    Kind.PARTITION: (2.0, 15.0),
    Kind.PARTITION_OUT: (2.0, 15.0),
    Kind.PARTITION_IN: (2.0, 15.0),
    Kind.PARTITION_CLIENTS: (2.0, 10.0),
    Kind.PARTITION_PAIR: (2.0, 15.0),
    Kind.FULL_DISK: (1.0, 6.0),
}
"""On both sides of a session's timeout of 9 s."""
_QUIET_S = (0.5, 4.0)


class Fault(NamedTuple):
    """One disturbance: of `brokers[0]`, or of all named where the kind says so, for so many seconds, and a pause."""

    kind: Kind
    brokers: tuple[int, ...]
    seconds: float
    quiet_s: float

    def __str__(self) -> str:
        return f"{self.kind.value}, brokers {list(self.brokers)}, {self.seconds:.1f} s"


def schedule(seed: int, brokers: Sequence[int], kinds: Collection[Kind]) -> Iterator[Fault]:
    """Return faults without end. Each kind comes once before any comes a second time."""
    drawn = random.Random(seed)
    while True:
        round_of_kinds = [kind for kind in Kind if kind in kinds]
        drawn.shuffle(round_of_kinds)
        for kind in round_of_kinds:
            order = list(brokers)
            drawn.shuffle(order)
            least, most = _DURATIONS_S.get(kind, (0.0, 0.0))
            yield Fault(kind, tuple(order), drawn.uniform(least, most), drawn.uniform(*_QUIET_S))
