"""GroupMachine: every decision about the groups of one partition of `__consumer_offsets`.

Owns the dispatch of events, by the event's type and the group's, and of records to state changes. Reads no clock, has
no random source and does no I/O.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pybroker.coordinator.group import admin, offsets, transactional_offsets
from pybroker.coordinator.group.classic import timeouts
from pybroker.coordinator.group.classic.draft import GroupDraft
from pybroker.coordinator.group.classic.group import ClassicGroup
from pybroker.coordinator.group.classic.heartbeat import heartbeat, session
from pybroker.coordinator.group.classic.join import join
from pybroker.coordinator.group.classic.leave import leave
from pybroker.coordinator.group.classic.rebalance import prepare_rebalance
from pybroker.coordinator.group.classic.replay import build_group
from pybroker.coordinator.group.classic.sync import sync
from pybroker.coordinator.group.errors import InconsistentGroupProtocolError, UnknownMemberIdError
from pybroker.coordinator.group.events import (
    CommitOffsets,
    CommitTransactionalOffsets,
    CompleteTransaction,
    ConsumerHeartbeat,
    DeleteGroups,
    DeleteOffsets,
    DescribeConsumerGroups,
    DescribeGroups,
    DescribeStreamsGroups,
    ExpireOffsets,
    FetchOffsets,
    Heartbeat,
    InitialDelayOver,
    JoinGroup,
    JoinPhaseOver,
    LeaveGroup,
    ListGroups,
    SessionOver,
    StreamsHeartbeat,
    SyncGroup,
    SyncPhaseOver,
    TopicsDeleted,
)
from pybroker.coordinator.group.group_change import GroupChange
from pybroker.coordinator.group.ids import GroupId
from pybroker.coordinator.group.modern import classic_members
from pybroker.coordinator.group.modern.describe import describe
from pybroker.coordinator.group.modern.group import ConsumerGroup
from pybroker.coordinator.group.modern.heartbeat import heartbeat as consumer_heartbeat
from pybroker.coordinator.group.modern.leave import fence
from pybroker.coordinator.group.modern.replay import REPLAY
from pybroker.coordinator.group.reconciled.timers import MemberSilent, RevocationOverdue
from pybroker.coordinator.group.state import GroupState
from pybroker.coordinator.group.streams import leave as streams_leave
from pybroker.coordinator.group.streams.decision import StreamsDecision
from pybroker.coordinator.group.streams.describe import describe as describe_streams
from pybroker.coordinator.group.streams.group import StreamsGroup
from pybroker.coordinator.group.streams.heartbeat import heartbeat as streams_heartbeat
from pybroker.coordinator.group.streams.replay import REPLAY as STREAMS_REPLAY
from pybroker.coordinator.group.streams.timers import StreamsDelayOver
from pybroker.coordinator.group.transactional_records import TransactionalKey, TransactionEnd
from pybroker.coordinator.group.view import Topics
from pybroker.coordinator.runtime.machine import Loaded
from pybroker.machine.machine import Outcome
from pybroker.protocol.messages.group_records.group_metadata import GroupMetadataKey
from pybroker.protocol.messages.group_records.offset_commit import OffsetCommitKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pybroker.coordinator.group.group_change import Record
    from pybroker.coordinator.group.reconciled.replay import Replay
    from pybroker.coordinator.group.settings import GroupSettings, OwnSettings
    from pybroker.coordinator.group.view import GroupView

    Decision = Callable[[GroupView, Any, int], Outcome[Record, Any]]
    Change = Callable[[GroupState, Any, Any], None]

NO_TOPICS = Topics()
NO_SETTINGS: Mapping[str, OwnSettings] = {}


class GroupMachine:
    """A `ShardMachine` over the groups and offsets of one partition."""

    alone = frozenset({CommitTransactionalOffsets, CompleteTransaction})
    """Events whose records the log accepts or rejects by their producer's state: they are appended alone."""

    def __init__(
        self,
        settings: GroupSettings,
        topics: Callable[[], Topics] = lambda: NO_TOPICS,
        of_groups: Callable[[], Mapping[str, OwnSettings]] = lambda: NO_SETTINGS,
    ) -> None:
        """`topics` returns the cluster's current topics, `of_groups` the settings of the groups that have settings of
        their own.
        """
        self.state = GroupState(settings, topics, of_groups)

    def handle(self, event: Any, now: int) -> Outcome[Record, Any]:
        """Decide about an event at `now` in milliseconds; the event's docstring describes the reply."""
        return DECISIONS[type(event)](self.state, event, now)

    def apply(self, record: Record) -> None:
        """Apply a record to the state."""
        if type(record) is GroupChange:
            self.state.put_group(record.group_id, record.group)
        else:
            CHANGES[type(record.key)](self.state, record.key, record.value)  # type: ignore[union-attr]

    def load(self, records: Iterable[tuple[Any, Any]]) -> None:
        """Apply records that were read from the log: keys and values."""
        state, changes = self.state, CHANGES
        # Most records of a log are offsets, often many of one group in a row: the group's mapping is looked up once
        # per row. Loading is never undone.
        group_id, row = None, None
        for key, value in records:
            if row is not None and type(key) is OffsetCommitKey and value is not None and key.group == group_id:
                row[key.topic, key.partition] = value
                continue
            changes[type(key)](state, key, value)
            group_id = key.group if type(key) is OffsetCommitKey else None
            # During open transactions a commit may overtake pending offsets.
            in_rows = group_id is not None and not state.has_open_transactions
            row = state.offsets_in_place(group_id) if group_id is not None and in_rows else None

    def entries(self) -> int:
        """Count the groups."""
        return len(self.state.groups)

    def draft(self) -> GroupMachine:
        """Return this machine, which records all changes from now on."""
        self.state.begin()
        return self

    def keep(self) -> GroupMachine:
        """Keep the changes since `draft`."""
        self.state.commit()
        return self

    def drop(self) -> None:
        """Undo the changes since `draft`."""
        self.state.undo()


def _join(view: GroupView, event: JoinGroup, now: int) -> Outcome[Record, Any]:
    group = view.group(event.request.group_id)
    if group is None or isinstance(group, ClassicGroup):
        return join(view, event, now, group)
    if isinstance(group, ConsumerGroup) and not group.is_empty:
        return classic_members.join(view, event, now, group)
    if not group.is_empty:
        raise InconsistentGroupProtocolError
    # The group is empty: a classic group replaces it, and the offsets are kept.
    outcome = join(view, event, now, None)
    if not outcome.records:
        return outcome
    return msgspec.structs.replace(outcome, records=(*group.build_tombstones(), *outcome.records))


def _sync(view: GroupView, event: SyncGroup, now: int) -> Outcome[Record, Any]:
    group = _joined(view, event.request.group_id)
    if isinstance(group, ConsumerGroup):
        return classic_members.sync(view, event, now, group)
    return sync(view, event, now, group)


def _heartbeat(view: GroupView, event: Heartbeat, now: int) -> Outcome[Record, Any]:
    group = _joined(view, event.request.group_id)
    if isinstance(group, ConsumerGroup):
        return classic_members.heartbeat(view, event, now, group)
    return heartbeat(view, event, now, group)


def _leave(view: GroupView, event: LeaveGroup, now: int) -> Outcome[Record, Any]:
    group = _joined(view, event.request.group_id)
    if isinstance(group, ConsumerGroup):
        return classic_members.leave(view, event, now, group)
    return leave(view, event, now, group)


def _joined(view: GroupView, group_id: str) -> ClassicGroup | ConsumerGroup:
    group = view.group(group_id)
    if not isinstance(group, ClassicGroup | ConsumerGroup):
        raise UnknownMemberIdError(f"Group {group_id} not found.")
    return group


def _fence_member(view: GroupView, event: MemberSilent | RevocationOverdue, now: int) -> Outcome[Record, None]:
    """Remove a member whose session has expired, or that missed its revocation deadline in its epoch."""
    group = view.group(event.group_id)
    if not isinstance(group, ConsumerGroup | StreamsGroup) or event.member_id not in group.members:
        return Outcome((), None)
    if isinstance(event, RevocationOverdue) and group.members[event.member_id].epoch != event.epoch:
        return Outcome((), None)
    if isinstance(group, ConsumerGroup):
        return fence(view, group, [group.member(event.member_id)], now).outcome(None)
    decision = StreamsDecision(group)
    streams_leave.fence(decision, group.member(event.member_id))
    return decision.outcome(None)


def _loaded(view: GroupView, _event: Loaded, now: int) -> Outcome[Record, None]:
    """Start the sessions of all members; a group larger than `group.max.size` rebalances, and drops the last ones."""
    records: list[Record] = []
    timers = [offsets.expiration_timer(view, now)]
    for group in view.groups.values():
        if isinstance(group, ConsumerGroup):
            timers += group.load_timers(view.consumer_settings(group.id).session_timeout_ms, now)
        elif isinstance(group, StreamsGroup):
            timers += group.load_timers(view.streams_settings(group.id).session_timeout_ms, now)
        if not isinstance(group, ClassicGroup):
            continue
        timers += [session(group, member_id, now) for member_id in group.members]
        if len(group.members) > view.settings.max_size:
            draft = GroupDraft(group, view.settings, now)
            prepare_rebalance(draft, f"Freshly-loaded group is over capacity {view.settings.max_size}")
            outcome = draft.outcome(None)
            records += outcome.records
            timers += outcome.timers
    return Outcome(tuple(records), None, tuple(timers))


DECISIONS: dict[type, Decision] = {
    CommitOffsets: offsets.commit,
    CommitTransactionalOffsets: transactional_offsets.commit,
    CompleteTransaction: transactional_offsets.complete,
    ConsumerHeartbeat: consumer_heartbeat,
    DeleteGroups: admin.delete_groups,
    DeleteOffsets: offsets.delete,
    DescribeConsumerGroups: describe,
    DescribeGroups: admin.describe_groups,
    DescribeStreamsGroups: describe_streams,
    ExpireOffsets: offsets.expire,
    FetchOffsets: offsets.fetch,
    Heartbeat: _heartbeat,
    InitialDelayOver: timeouts.end_initial_delay,
    JoinGroup: _join,
    JoinPhaseOver: timeouts.end_join_phase,
    LeaveGroup: _leave,
    ListGroups: admin.list_groups,
    Loaded: _loaded,
    MemberSilent: _fence_member,
    RevocationOverdue: _fence_member,
    SessionOver: timeouts.end_session,
    StreamsDelayOver: streams_leave.assign_after_delay,
    StreamsHeartbeat: streams_heartbeat,
    SyncGroup: _sync,
    SyncPhaseOver: timeouts.end_sync_phase,
    TopicsDeleted: offsets.forget_topics,
}
"""The decision function of each event type."""


def _apply_group(state: GroupState, key: GroupMetadataKey, value: Any) -> None:
    state.put_group(GroupId(key.group), None if value is None else build_group(key.group, value))


def _apply_offset(state: GroupState, key: OffsetCommitKey, value: Any) -> None:
    if value is not None:
        _ensure_group(state, key, value)
    state.put_offset(key.group, key.topic, key.partition, value)


def _ensure_group(state: GroupState, key: OffsetCommitKey, value: Any) -> None:
    if state.group(key.group) is None:
        state.put_group(GroupId(key.group), offsets.simple_group(key.group, value.commit_timestamp))


def _apply_transactional(state: GroupState, key: TransactionalKey, value: Any) -> None:
    inner = key.key
    if type(inner) is not OffsetCommitKey or value is None:
        # Kafka only writes offsets in transactions, and treats other records as non-transactional.
        CHANGES[type(inner)](state, inner, value)
        return
    _ensure_group(state, inner, value)
    state.put_pending(key.producer_id, inner.group, (inner.topic, inner.partition), value)


def _apply_end(state: GroupState, key: TransactionEnd, _value: None) -> None:
    state.end_transaction(key.producer_id, committed=key.committed)


def _change_of(kind: type, replay: Replay[Any]) -> Change:
    """Return the change that a record of a type of groups makes."""

    def change(state: GroupState, key: Any, value: Any) -> None:
        group = state.group(key.group_id)
        before = group if isinstance(group, kind) else None
        if before is not None or value is not None:
            state.put_group(GroupId(key.group_id), replay.replay(before, key, value))

    return change


CHANGES: dict[type, Change] = {
    **dict.fromkeys(REPLAY.keys, _change_of(ConsumerGroup, REPLAY)),
    **dict.fromkeys(STREAMS_REPLAY.keys, _change_of(StreamsGroup, STREAMS_REPLAY)),
    GroupMetadataKey: _apply_group,
    OffsetCommitKey: _apply_offset,
    TransactionalKey: _apply_transactional,
    TransactionEnd: _apply_end,
}
"""The state change of a record, by the class of its key."""
