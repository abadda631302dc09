"""What the group machine is asked, and what its timers bring.

Owns the shapes alone. Requests are carried as they were decoded, with what else a decision needs of them; where a
choice is random the event carries the dice. The reply to a request is its response message, or one group's part of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pybroker.coordinator.group.ids import GroupId, MemberId
    from pybroker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
    from pybroker.protocol.messages.heartbeat import HeartbeatRequest
    from pybroker.protocol.messages.join_group import JoinGroupRequest
    from pybroker.protocol.messages.leave_group import LeaveGroupRequest
    from pybroker.protocol.messages.offset_commit import OffsetCommitRequest
    from pybroker.protocol.messages.offset_delete import OffsetDeleteRequest
    from pybroker.protocol.messages.offset_fetch import OffsetFetchRequestGroup
    from pybroker.protocol.messages.sync_group import SyncGroupRequest
    from pybroker.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest


class Client(NamedTuple):
    """Who asks."""

    client_id: str
    client_host: str
    """A slash and the address, as Java writes it."""


class ConsumerHeartbeat(msgspec.Struct, frozen=True, gc=False):
    """Answered by a `ConsumerGroupHeartbeatResponse`."""

    request: ConsumerGroupHeartbeatRequest
    version: int
    client: Client
    fresh_id: str
    """Random; the id of a member that made none for itself, as those of version 0 do not."""


class JoinGroup(msgspec.Struct, frozen=True, gc=False):
    """Answered by a `JoinGroupResponse`, perhaps when the rebalance ends."""

    request: JoinGroupRequest
    version: int
    client: Client
    fresh_id: str
    """Random; the end of the member id that a new member gets."""


class SyncGroup(msgspec.Struct, frozen=True, gc=False):
    """Answered by a `SyncGroupResponse`, perhaps when the leader has brought the assignment."""

    request: SyncGroupRequest


class Heartbeat(msgspec.Struct, frozen=True, gc=False):
    """Answered by a `HeartbeatResponse`."""

    request: HeartbeatRequest


class LeaveGroup(msgspec.Struct, frozen=True, gc=False):
    """Answered by a `LeaveGroupResponse`."""

    request: LeaveGroupRequest


class CommitOffsets(msgspec.Struct, frozen=True, gc=False):
    """Answered by an `OffsetCommitResponse`. Every topic has name and id, and every partition exists."""

    request: OffsetCommitRequest
    version: int


class FetchOffsets(msgspec.Struct, frozen=True, gc=False):
    """Answered by an `OffsetFetchResponseGroup`. Every topic has its name."""

    group: OffsetFetchRequestGroup
    require_stable: bool = False
    """Whether an offset that an open transaction may change is UNSTABLE_OFFSET_COMMIT (KIP-447)."""


class CommitTransactionalOffsets(msgspec.Struct, frozen=True, gc=False):
    """Answered by a `TxnOffsetCommitResponse`. Every partition exists, and the transaction is verified."""

    request: TxnOffsetCommitRequest
    topic_ids: Mapping[str, bytes]
    """The ids of the request's topics."""
    guard: int | None
    """What the log gave out when the verification began; 0 where the transaction was open, None for no check."""


class CompleteTransaction(msgspec.Struct, frozen=True, gc=False):
    """Answered by None once the marker is committed, and with it what the transaction committed is visible or gone."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    transaction_version: int


class DeleteOffsets(msgspec.Struct, frozen=True):
    """Answered by an `OffsetDeleteResponse`. Every partition exists."""

    request: OffsetDeleteRequest


class ListGroups(msgspec.Struct, frozen=True):
    """Answered by a list of `ListedGroup`."""

    states: Collection[str] = ()
    """Kafka's names in lower case; none for all."""
    types: Collection[str] = ()


class DescribeGroups(msgspec.Struct, frozen=True):
    """Answered by a list of `DescribedGroup`."""

    group_ids: Sequence[str]
    version: int


class DeleteGroups(msgspec.Struct, frozen=True):
    """Answered by `DeletableGroupResult`s of the first groups, one at least; the others have to be asked for again."""

    group_ids: Sequence[str]


class ExpireOffsets(msgspec.Struct, frozen=True):
    """Offsets whose retention is over go, and groups without any. Answered by None."""


class TopicsDeleted(msgspec.Struct, frozen=True):
    """Topics are gone, and with them the offsets committed for them. Answered by None."""

    topics: Sequence[tuple[str, bytes]]
    """Name and id."""


class SessionOver(msgspec.Struct, frozen=True):
    """A member of a classic group was silent for its session timeout."""

    group_id: GroupId
    member_id: MemberId


class InitialDelayOver(msgspec.Struct, frozen=True):
    """A new group has waited for more members."""

    group_id: GroupId
    delay_ms: int
    remaining_ms: int
    """How much longer it may wait, when one has come meanwhile."""


class JoinPhaseOver(msgspec.Struct, frozen=True):
    """Members of a classic group had their rebalance timeout to join again."""

    group_id: GroupId


class SyncPhaseOver(msgspec.Struct, frozen=True):
    """Members of a classic group had their rebalance timeout to ask for their assignment."""

    group_id: GroupId
    generation: int


class DescribeConsumerGroups(msgspec.Struct, frozen=True):
    """Answered by a list of `DescribedGroup`."""

    group_ids: Sequence[str]
