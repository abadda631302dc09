"""Assignors of the classic protocol: who of a group reads which partition, decided by the group's leader.

Pure functions of what the members said; results are those of Kafka's Java assignors. Knows no connection and no group
state. A custom assignor is any object with the face of `Assignor`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pybroker.client.assignors.assignor import Assignor, GroupMember
from pybroker.client.assignors.cooperative_sticky import CooperativeStickyAssignor
from pybroker.client.assignors.range import RangeAssignor
from pybroker.client.assignors.round_robin import RoundRobinAssignor
from pybroker.client.assignors.sticky import StickyAssignor
from pybroker.client.errors import SettingError

__all__ = [
    "Assignor",
    "CooperativeStickyAssignor",
    "GroupMember",
    "RangeAssignor",
    "RoundRobinAssignor",
    "StickyAssignor",
    "make_assignors",
]

_KNOWN = {
    assignor.name: assignor
    for assignor in (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)
}


def make_assignors(wanted: str | Sequence[str | Assignor]) -> list[Assignor]:
    """The assignors that `partition.assignment.strategy` names: by protocol name, by Kafka's class name, or themselves.

    Raises SettingError for a name that is not known.
    """
    parts = wanted.split(",") if isinstance(wanted, str) else wanted
    made = [_make(part.strip()) if isinstance(part, str) else part for part in parts]
    if not made:
        raise SettingError("partition.assignment.strategy: names no assignor")
    return made


def _make(name: str) -> Assignor:
    for known, assignor in _KNOWN.items():
        if name in (known, f"org.apache.kafka.clients.consumer.{assignor.__name__}"):
            return assignor()
    raise SettingError(f"partition.assignment.strategy={name}: known are {', '.join(_KNOWN)}")
