"""A member of a consumer group, as a value.

Owns its shape, the states of its reconciliation and which may follow which. Decides nothing: `reconciliation` does.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from pybroker.machine.transitions import Transitions

if TYPE_CHECKING:
    from collections.abc import Mapping

JOIN_EPOCH = 0
"""The epoch that a member names who wants to join."""
LEAVE_EPOCH = -1
"""The epoch that a member names who leaves."""
STATIC_LEAVE_EPOCH = -2
"""The epoch that a static member names who leaves for a while; what it has waits for it until its session ends."""


class MemberState(IntEnum):
    """How far a member is on its way to the target; the numbers are those of its record."""

    STABLE = 0
    """It has all that it is to have of the epoch that it is in."""
    UNREVOKED_PARTITIONS = 1
    """It has something that it is to give back, and stays in its epoch until it says that it has."""
    UNRELEASED_PARTITIONS = 2
    """It is in the target's epoch and waits for partitions that others have not given back yet."""
    UNKNOWN = 127
    """A state of a newer broker: the member has to begin anew."""


class Step(Enum):
    """What a reconciliation finds."""

    REVOKE = "it has what it is not to have"
    WAIT = "others have what it is to have"
    SETTLE = "it has what it is to have"


TRANSITIONS = {
    (state, step): after
    for state in MemberState
    for step, after in (
        (Step.REVOKE, MemberState.UNREVOKED_PARTITIONS),
        (Step.WAIT, MemberState.UNRELEASED_PARTITIONS),
        (Step.SETTLE, MemberState.STABLE),
    )
}

RECONCILIATION = Transitions("reconciliation of a member", MemberState.STABLE, TRANSITIONS)

Held: TypeAlias = "Mapping[bytes, Mapping[int, int]]"
"""Partitions by topic id, each with the member epoch in which it was given; no topic without partitions."""

Owned: TypeAlias = "Mapping[bytes, frozenset[int]]"
"""Partitions by topic id."""


class ClassicProtocol(msgspec.Struct, frozen=True):
    """An assignor that a member of the classic protocol offers."""

    name: str
    metadata: bytes


class ClassicMember(msgspec.Struct, frozen=True):
    """What only a member has that speaks the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[ClassicProtocol, ...]
    """The best first, which is the one that answers name."""


class Member(msgspec.Struct, frozen=True):
    """A member: who it is, what it wants, and what it has."""

    member_id: str
    epoch: int = JOIN_EPOCH
    """Named by its heartbeats; rises when it has followed the target, `STATIC_LEAVE_EPOCH` while it is away."""
    previous_epoch: int = -1
    """The one before: named once more when the answer with the new one was lost."""
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    """Set for a static member (KIP-345)."""
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    """How long it may take to give partitions back."""
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    """Names that it is subscribed to."""
    regex: str = ""
    """Pattern of names that it is subscribed to; empty without one."""
    assignor: str | None = None
    """The assignor that it wishes for."""
    assigned: Held = {}
    """What it has or may take, and is to keep."""
    revoking: Held = {}
    """What it has and is to give back; empty outside of UNREVOKED_PARTITIONS."""
    classic: ClassicMember | None = None
    """Set while it speaks the classic protocol."""

    @property
    def has(self) -> Owned:
        """What it has, whether or not it is to keep it."""
        return {
            topic: frozenset(self.assigned.get(topic, ())) | frozenset(self.revoking.get(topic, ()))
            for topic in self.assigned.keys() | self.revoking.keys()
        }

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether it has all that a target of `epoch` gives it."""
        return self.state is MemberState.STABLE and self.epoch == epoch
