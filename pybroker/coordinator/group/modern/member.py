"""A member of a consumer group, as a value.

Owns its type, the states of its reconciliation and their transitions. Decides nothing: `reconciliation` does.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from pybroker.machine.transitions import Transitions

if TYPE_CHECKING:
    from collections.abc import Mapping

JOIN_EPOCH = 0
"""The epoch in the heartbeat of a member that joins."""
LEAVE_EPOCH = -1
"""The epoch in the heartbeat of a member that leaves."""
STATIC_LEAVE_EPOCH = -2
"""The epoch in the heartbeat of a static member that leaves temporarily; its partitions are reserved until its session
ends."""


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

Held: TypeAlias = "Mapping[bytes, Mapping[int, int]]"
"""Partitions by topic id, each with the member epoch of its assignment; no topic without partitions."""

Owned: TypeAlias = "Mapping[bytes, frozenset[int]]"
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


class Member(msgspec.Struct, frozen=True):
    """A member: its identity, its subscription, and its partitions."""

    member_id: str
    epoch: int = JOIN_EPOCH
    """The epoch in its heartbeats; advances when it has reached the target, `STATIC_LEAVE_EPOCH` while it is away."""
    previous_epoch: int = -1
    """The previous epoch, which the member sends again if the response with the new one was lost."""
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    """Set for a static member (KIP-345)."""
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    """Maximum time for it to revoke partitions."""
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    """Names of the topics that it subscribes to."""
    regex: str = ""
    """Regular expression of topic names that it subscribes to; empty without one."""
    assignor: str | None = None
    """The assignor that it prefers."""
    assigned: Held = {}
    """Partitions that it has or may take, and keeps."""
    revoking: Held = {}
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

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether it has all partitions of a target of `epoch`."""
        return self.state is MemberState.STABLE and self.epoch == epoch
