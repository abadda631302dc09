"""A member that reconciles with a target assignment, as a value.

Owns the fields that consumer and streams groups have in common. Decides nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, TypeVar

import msgspec

JOIN_EPOCH = 0
"""The epoch in the heartbeat of a member that joins."""
LEAVE_EPOCH = -1
"""The epoch in the heartbeat of a member that leaves."""
STATIC_LEAVE_EPOCH = -2
"""The epoch in the heartbeat of a static member that leaves temporarily; its assignment is reserved until its session
ends."""

Owned = TypeVar("Owned", contravariant=True)


class ReconciledMember(msgspec.Struct, Generic[Owned], frozen=True):
    """A member: its identity and its epochs."""

    member_id: str
    epoch: int = JOIN_EPOCH
    """The epoch in its heartbeats; advances when it has reached the target, `STATIC_LEAVE_EPOCH` while it is away."""
    previous_epoch: int = -1
    """The previous epoch, which the member sends again if the response with the new one was lost."""
    instance_id: str | None = None
    """Set for a static member (KIP-345)."""
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    """Maximum time for it to revoke partitions or tasks."""
    client_id: str = ""
    client_host: str = ""

    @property
    def is_classic(self) -> bool:
        """Whether it uses the classic protocol, which only a member of a consumer group may do."""
        return False

    @property
    @abstractmethod
    def must_revoke(self) -> bool:
        """Whether it must acknowledge a revocation within its rebalance timeout."""

    @abstractmethod
    def has_all(self, owned: Owned) -> bool:
        """Return whether all of these are assigned to it."""

    @abstractmethod
    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether it has all partitions or tasks of a target of `epoch`."""
