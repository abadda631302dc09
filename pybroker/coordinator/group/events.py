"""Events of the group machine: requests, and timers.

Owns only these types. An event contains the decoded request, and further values that the decision needs, including all
random values. The reply to a request is its response message, or one group's part of it.
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
    from pybroker.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
    from pybroker.protocol.messages.sync_group import SyncGroupRequest
    from pybroker.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest


class Client(NamedTuple):
    """The client that sent the request."""

    client_id: str
    client_host: str
    """A slash and the address, as Java formats it."""


class ConsumerHeartbeat(msgspec.Struct, frozen=True, gc=False):
    """The reply is a `ConsumerGroupHeartbeatResponse`."""

    request: ConsumerGroupHeartbeatRequest
    version: int
    client: Client
    fresh_id: str
    """Random; the member id of a client that sends none, as in version 0."""


class StreamsHeartbeat(msgspec.Struct, frozen=True, gc=False):
    """The reply is a `StreamsReply`."""

    request: StreamsGroupHeartbeatRequest
    version: int
    client: Client


class JoinGroup(msgspec.Struct, frozen=True, gc=False):
    """The reply is a `JoinGroupResponse`, which may be delayed until the join phase ends."""

    request: JoinGroupRequest
    version: int
    client: Client
    fresh_id: str
    """Random; the suffix of a new member's id."""


class SyncGroup(msgspec.Struct, frozen=True, gc=False):
    """The reply is a `SyncGroupResponse`, which may be delayed until the leader sends the assignment."""

    request: SyncGroupRequest


class Heartbeat(msgspec.Struct, frozen=True, gc=False):
    """The reply is a `HeartbeatResponse`."""

    request: HeartbeatRequest


class LeaveGroup(msgspec.Struct, frozen=True, gc=False):
    """The reply is a `LeaveGroupResponse`."""

    request: LeaveGroupRequest


class CommitOffsets(msgspec.Struct, frozen=True, gc=False):
    """The reply is an `OffsetCommitResponse`. Every topic has name and id, and every partition exists."""

    request: OffsetCommitRequest
    version: int


class FetchOffsets(msgspec.Struct, frozen=True, gc=False):
    """The reply is an `OffsetFetchResponseGroup`. Every topic has its name."""

    group: OffsetFetchRequestGroup
    require_stable: bool = False
    """Whether an offset that an open transaction may change is UNSTABLE_OFFSET_COMMIT (KIP-447)."""


class CommitTransactionalOffsets(msgspec.Struct, frozen=True, gc=False):
    """The reply is a `TxnOffsetCommitResponse`. Every partition exists, and the transaction is verified."""

    request: TxnOffsetCommitRequest
    topic_ids: Mapping[str, bytes]
    """The ids of the request's topics."""
    guard: int | None
    """The guard that the log returned when the verification began; 0 if the transaction was open, None for no check."""


class CompleteTransaction(msgspec.Struct, frozen=True, gc=False):
    """The reply is None once the marker is committed; the transaction's offsets are then applied or dropped."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    transaction_version: int


class DeleteOffsets(msgspec.Struct, frozen=True):
    """The reply is an `OffsetDeleteResponse`. The sender has checked that every partition exists."""

    request: OffsetDeleteRequest


class ListGroups(msgspec.Struct, frozen=True):
    """The reply is a list of `ListedGroup`."""

    states: Collection[str] = ()
    """Kafka's names in lower case; empty for all states."""
    types: Collection[str] = ()


class DescribeGroups(msgspec.Struct, frozen=True):
    """The reply is a list of `DescribedGroup`."""

    group_ids: Sequence[str]
    version: int


class DeleteGroups(msgspec.Struct, frozen=True):
    """The reply is `DeletableGroupResult`s of the first groups, at least one; repeat the event for the others."""

    group_ids: Sequence[str]


class ExpireOffsets(msgspec.Struct, frozen=True):
    """It is time to delete expired offsets, and groups without offsets. The reply is None."""


class TopicsDeleted(msgspec.Struct, frozen=True):
    """Topics are deleted, and so are the offsets committed for them. The reply is None."""

    topics: Sequence[tuple[str, bytes]]
    """Name and id."""


class SessionOver(msgspec.Struct, frozen=True):
    """The session timeout of a classic group's member has expired."""

    group_id: GroupId
    member_id: MemberId


class InitialDelayOver(msgspec.Struct, frozen=True):
    """The initial rebalance delay of a new group is over."""

    group_id: GroupId
    delay_ms: int
    remaining_ms: int
    """How much longer it may be delayed if a member has joined meanwhile."""


class JoinPhaseOver(msgspec.Struct, frozen=True):
    """The rebalance timeout for members of a classic group to rejoin has expired."""

    group_id: GroupId


class SyncPhaseOver(msgspec.Struct, frozen=True):
    """The rebalance timeout for SyncGroup requests of a classic group's members has expired."""

    group_id: GroupId
    generation: int


class DescribeConsumerGroups(msgspec.Struct, frozen=True):
    """The reply is a list of `DescribedGroup`."""

    group_ids: Sequence[str]


class DescribeStreamsGroups(msgspec.Struct, frozen=True):
    """The reply is a list of `DescribedGroup`."""

    group_ids: Sequence[str]
    includes_description: bool
    """Whether the client requests the description of the topology, which is never stored."""
