"""Assignors of the classic protocol: the group leader assigns each partition to a member.

Pure functions of the members' subscriptions; results equal those of Kafka's Java assignors. Must not depend on
connections or group state. A custom assignor is an object that implements `Assignor`, or a class of such
(`docs/guides/consumer.md`).
"""

from __future__ import annotations

from collections.abc import Sequence

from pybroker.client.assignors.assignor import Assignment, Assignor, GroupMember, RackAware, StatelessAssignor
from pybroker.client.assignors.cooperative_sticky import CooperativeStickyAssignor
from pybroker.client.assignors.range import RangeAssignor
from pybroker.client.assignors.round_robin import RoundRobinAssignor
from pybroker.client.assignors.sticky import StickyAssignor
from pybroker.client.errors import SettingError

__all__ = [
    "Assignment",
    "Assignor",
    "CooperativeStickyAssignor",
    "GroupMember",
    "RackAware",
    "RangeAssignor",
    "RoundRobinAssignor",
    "StatelessAssignor",
    "StickyAssignor",
    "make_assignors",
]

_FACE = ("name", "cooperative", "user_data", "assign", "on_assignment")
_KNOWN = {
    assignor.name: assignor
    for assignor in (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)
}


Wanted = str | type[Assignor] | Assignor
"""An assignor: by its name, by its class, or an instance."""


def make_assignors(wanted: Wanted | Sequence[Wanted]) -> list[Assignor]:
    """Return the assignors of `partition.assignment.strategy`, given by protocol name, Kafka's class name, class or
    instance.

    Raises SettingError for an unknown name, for two assignors with one name, and for an object that is no assignor.
    """
    parts = wanted.split(",") if isinstance(wanted, str) else wanted if isinstance(wanted, Sequence) else [wanted]
    made = [_make(part) for part in parts]
    if not made:
        raise SettingError("partition.assignment.strategy is empty: name at least one assignor")
    names = [assignor.name for assignor in made]
    if len(set(names)) < len(names):
        raise SettingError(f"partition.assignment.strategy: two assignors have the same name: {', '.join(names)}")
    return made


def _make(wanted: Wanted) -> Assignor:
    if isinstance(wanted, str):
        return _of_name(wanted.strip())
    made = wanted() if isinstance(wanted, type) else wanted
    missing = [part for part in _FACE if not hasattr(made, part)]
    if missing:
        raise SettingError(f"partition.assignment.strategy: {wanted!r} is not an assignor: add {', '.join(missing)}")
    return made


def _of_name(name: str) -> Assignor:
    for known, assignor in _KNOWN.items():
        if name in (known, f"org.apache.kafka.clients.consumer.{assignor.__name__}"):
            return assignor()
    raise SettingError(f"partition.assignment.strategy={name}: expected one of {', '.join(_KNOWN)}")
