"""A member of a consumer group, as a value.

Owns its type, the states of its reconciliation and their transitions. Decides nothing: `reconciliation` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import TypeAlias

import msgspec

from pybroker.coordinator.group.reconciled.member import ReconciledMember
from pybroker.machine.transitions import Transitions


class MemberState(IntEnum):
    """The state of a member's reconciliation with the target; the numbers are those of its record."""

    STABLE = 0
    """It has all partitions of the target in its epoch."""
    UNREVOKED_PARTITIONS = 1
    """It must revoke partitions, and stays in its epoch until it has acknowledged the revocation."""
    UNRELEASED_PARTITIONS = 2
    """It is in the target's epoch and waits for partitions that other members have not revoked yet."""
    UNKNOWN = 127
    """A state of a newer broker: the member must rejoin."""


class Step(Enum):
    """The result of a reconciliation."""

    REVOKE = "it has what it is not to have"
    WAIT = "others have what it is to have"
    COMPLETE = "it has what it is to have"


TRANSITIONS = {
    (state, step): after
    for state in MemberState
    for step, after in (
        (Step.REVOKE, MemberState.UNREVOKED_PARTITIONS),
        (Step.WAIT, MemberState.UNRELEASED_PARTITIONS),
        (Step.COMPLETE, MemberState.STABLE),
    )
}

RECONCILIATION = Transitions("reconciliation of a member", MemberState.STABLE, TRANSITIONS)

Held: TypeAlias = Mapping[bytes, Mapping[int, int]]
"""Partitions by topic id, each with the member epoch of its assignment; no topic without partitions."""
NOTHING_HELD: Held = {}

Owned: TypeAlias = Mapping[bytes, frozenset[int]]
"""Partitions by topic id."""


class ClassicProtocol(msgspec.Struct, frozen=True):
    """An assignor that a member of the classic protocol supports."""

    name: str
    metadata: bytes


class ClassicMember(msgspec.Struct, frozen=True):
    """The additional data of a member that uses the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[ClassicProtocol, ...]
    """In order of preference; responses contain the first one."""


class Member(ReconciledMember[Owned], frozen=True):
    """A member: its identity, its subscription, and its partitions."""

    state: MemberState = MemberState.STABLE
    topics: frozenset[str] = frozenset()
    """Names of the topics that it subscribes to."""
    regex: str = ""
    """Regular expression of topic names that it subscribes to; empty without one."""
    assignor: str | None = None
    """The assignor that it prefers."""
    assigned: Held = NOTHING_HELD
    """Partitions that it has or may take, and keeps."""
    revoking: Held = NOTHING_HELD
    """Partitions that it has and must revoke; empty except in UNREVOKED_PARTITIONS."""
    classic: ClassicMember | None = None
    """Set while it uses the classic protocol."""

    @property
    def has(self) -> Owned:
        """All its partitions, including those that it must revoke."""
        return {
            topic: frozenset(self.assigned.get(topic, ())) | frozenset(self.revoking.get(topic, ()))
            for topic in self.assigned.keys() | self.revoking.keys()
        }

    @property
    def is_classic(self) -> bool:
        """Whether it uses the classic protocol."""
        return self.classic is not None

    @property
    def must_revoke(self) -> bool:
        """Whether it must acknowledge a revocation; a member of the classic protocol rejoins instead."""
        return self.state is MemberState.UNREVOKED_PARTITIONS and self.classic is None

    def has_all(self, owned: Owned) -> bool:
        """Return whether all of these partitions are assigned to it."""
        assigned = self.assigned
        return all(topic in assigned and partitions <= assigned[topic].keys() for topic, partitions in owned.items())

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether it has all partitions of a target of `epoch`."""
        return self.state is MemberState.STABLE and self.epoch == epoch
