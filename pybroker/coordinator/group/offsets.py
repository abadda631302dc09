"""Committed offsets: commit, fetch, delete, and expiry (Kafka's `OffsetMetadataManager`).

Owns which members may commit, and the result of a fetch. Must not know how groups manage members: it calls the group's
checks. `transactional_offsets` owns commits in transactions; their pending offsets are considered here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pybroker.coordinator.group.classic.group import ClassicGroup
from pybroker.coordinator.group.classic.heartbeat import session
from pybroker.coordinator.group.classic.transitions import ClassicState
from pybroker.coordinator.group.errors import GroupIdNotFoundError, IllegalGenerationError
from pybroker.coordinator.group.events import ExpireOffsets
from pybroker.coordinator.group.ids import GroupId
from pybroker.coordinator.group.records import build_offset_commit, build_offset_tombstone
from pybroker.machine.machine import Outcome, Timer
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.group_records.offset_commit import OffsetCommitValue
from pybroker.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from pybroker.protocol.messages.offset_delete import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from pybroker.protocol.messages.offset_fetch import (
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from pybroker.protocol.schema import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

    from pybroker.coordinator.group.events import CommitOffsets, DeleteOffsets, FetchOffsets, TopicsDeleted
    from pybroker.coordinator.group.group_change import Record
    from pybroker.coordinator.group.records import GroupRecord
    from pybroker.coordinator.group.view import Group, GroupView
    from pybroker.protocol.messages.offset_fetch import OffsetFetchRequestTopics

_FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND = 9
"""From this version on a member of a deleted group receives GROUP_ID_NOT_FOUND (KIP-848)."""
NO_OFFSET = -1
MOST_REMOVED = 2_000
"""Maximum number of deleted offsets after which a decision leaves the remaining groups to the next one."""
_HAVE_SESSIONS = (ClassicState.STABLE, ClassicState.PREPARING_REBALANCE)

# These are created for each commit: positional arguments cost a third of keyword arguments.
_value = cast("Callable[[int, int, str, int, int, bytes], OffsetCommitValue]", OffsetCommitValue)
_partition = cast("Callable[[int], OffsetCommitResponsePartition]", OffsetCommitResponsePartition)
_topic = cast(
    "Callable[[str, bytes, list[OffsetCommitResponsePartition]], OffsetCommitResponseTopic]", OffsetCommitResponseTopic
)
_response = cast("Callable[[int, list[OffsetCommitResponseTopic]], OffsetCommitResponse]", OffsetCommitResponse)


def commit(view: GroupView, event: CommitOffsets, now: int) -> Outcome[Record, OffsetCommitResponse]:
    """Decide about offsets to commit; each partition succeeds or fails by itself. Raises a `GroupError`."""
    request = event.request
    group_id = request.group_id
    check, timers = _check_commit(view, event, now)
    too_long = view.settings.offset_metadata_max_bytes
    # The record stores an int64, and clients may request any retention.
    expires = -1 if request.retention_time_ms == -1 else min(now + request.retention_time_ms, 2**63 - 1)
    records: list[Record] = []
    topics = []
    for topic in request.topics:
        name, topic_id = topic.name, topic.topic_id
        partitions = []
        for partition in topic.partitions:
            index = partition.partition_index
            metadata = partition.committed_metadata or ""
            # A character has at most two UTF-16 units, so short metadata costs one comparison.
            if 2 * len(metadata) > too_long and utf16_length(metadata) > too_long:
                code = ErrorCode.OFFSET_METADATA_TOO_LARGE
                partitions.append(OffsetCommitResponsePartition(partition_index=index, error_code=code))
                continue
            if check is not None:
                check(name, topic_id, index)
            # The record version with an expiry timestamp has no topic id.
            known_id = topic_id if expires < 0 else ZERO_UUID
            value = _value(
                partition.committed_offset, partition.committed_leader_epoch, metadata, now, expires, known_id
            )
            records.append(build_offset_commit(group_id, name, index, value))
            partitions.append(_partition(index))
        topics.append(_topic(name, topic_id, partitions))
    return Outcome(tuple(records), _response(0, topics), timers)


def utf16_length(text: str) -> int:
    """Return the length of a text in UTF-16 units, as Java and `offset.metadata.max.bytes` count."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def _check_commit(
    view: GroupView, event: CommitOffsets, now: int
) -> tuple[Callable[[str, bytes, int], None] | None, tuple[Timer, ...]]:
    """Raise an error if the member may not commit. A commit restarts the member's session timeout."""
    request = event.request
    generation = request.generation_id_or_member_epoch
    group = view.group(request.group_id)
    if group is None:
        if generation < 0:
            return None, ()  # The commit creates the group: a simple one, without members.
        if event.version >= _FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND:
            raise GroupIdNotFoundError(f"Group {request.group_id} not found.")
        raise IllegalGenerationError
    check = group.check_commit(request.member_id, request.group_instance_id, generation, event.version)
    if isinstance(group, ClassicGroup) and request.member_id in group.members and group.state in _HAVE_SESSIONS:
        return check, (session(group, request.member_id, now),)
    return check, ()


def fetch(view: GroupView, event: FetchOffsets, _now: int) -> Outcome[Record, OffsetFetchResponseGroup]:
    """Return the committed offsets; none for an unknown group. Raises a `GroupError`."""
    requested = event.group
    offsets: Mapping[tuple[str, int], OffsetCommitValue] = {}
    unstable: Collection[tuple[str, int]] = ()
    group = view.group(requested.group_id)
    if group is not None:
        group.check_fetch(requested.member_id, requested.member_epoch)
        offsets = view.offsets(requested.group_id)
        if event.require_stable:
            unstable = view.pending(requested.group_id)
    if requested.topics is None:
        topics = _all_topics(offsets, unstable)
    else:
        topics = [_requested_topic(topic, offsets, unstable) for topic in requested.topics]
    return Outcome((), OffsetFetchResponseGroup(group_id=requested.group_id, topics=topics))


def _requested_topic(
    topic: OffsetFetchRequestTopics,
    offsets: Mapping[tuple[str, int], OffsetCommitValue],
    unstable: Collection[tuple[str, int]],
) -> OffsetFetchResponseTopics:
    """Return the response for one topic. An offset of an earlier topic with the same name is skipped."""
    partitions = []
    for index in topic.partition_indexes:
        value = offsets.get((topic.name, index))
        if value is not None and topic.topic_id not in (ZERO_UUID, value.topic_id) and value.topic_id != ZERO_UUID:
            value = None
        partitions.append(_fetched(index, value, is_stable=(topic.name, index) not in unstable))
    return OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


def _all_topics(
    offsets: Mapping[tuple[str, int], OffsetCommitValue], unstable: Collection[tuple[str, int]]
) -> list[OffsetFetchResponseTopics]:
    topics: dict[str, OffsetFetchResponseTopics] = {}
    for (name, index), value in offsets.items():
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = OffsetFetchResponseTopics(name=name, partitions=[])
        topic.partitions.append(_fetched(index, value, is_stable=(name, index) not in unstable))
    return list(topics.values())


def _fetched(index: int, value: OffsetCommitValue | None, *, is_stable: bool) -> OffsetFetchResponsePartitions:
    if not is_stable:
        return OffsetFetchResponsePartitions(
            partition_index=index,
            committed_offset=NO_OFFSET,
            metadata="",
            error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT,
        )
    if value is None:
        return OffsetFetchResponsePartitions(partition_index=index, committed_offset=NO_OFFSET, metadata="")
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=value.offset,
        committed_leader_epoch=value.leader_epoch,
        metadata=value.metadata,
    )


def delete(view: GroupView, event: DeleteOffsets, _now: int) -> Outcome[Record, OffsetDeleteResponse]:
    """Delete offsets of topics that no member subscribes to. Raises a `GroupError`."""
    request = event.request
    group = view.group(request.group_id)
    if group is None:
        raise GroupIdNotFoundError(f"Group {request.group_id} not found.")
    group.check_offset_delete()
    offsets, pending = view.offsets(request.group_id), view.pending(request.group_id)
    records: list[Record] = []
    topics = []
    for topic in request.topics:
        subscribed = group.is_subscribed_to(topic.name)
        code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
        indexes = [partition.partition_index for partition in topic.partitions]
        if not subscribed:
            records += [
                build_offset_tombstone(request.group_id, topic.name, index)
                for index in indexes
                if (topic.name, index) in offsets or (topic.name, index) in pending
            ]
        partitions = [OffsetDeleteResponsePartition(partition_index=index, error_code=code) for index in indexes]
        topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=partitions))
    return Outcome(tuple(records), OffsetDeleteResponse(topics=topics))


def expire(view: GroupView, event: ExpireOffsets, now: int) -> Outcome[Record, None]:
    """Delete expired offsets, and empty groups without offsets; repeated after the interval.

    If there are many, the rest is deleted in the next iteration of the loop.
    """
    records: list[Record] = []
    timers: list[Timer] = [expiration_timer(view, now)]
    for group_id, group in view.groups.items():
        if len(records) >= MOST_REMOVED:
            timers[0] = Timer(timers[0].key, now, event)
            break
        removed = [build_offset_tombstone(group_id, *partition) for partition in _expired(view, group, now)]
        records += removed
        if group.is_empty and len(removed) == len(view.offsets(group_id)) and not view.pending(group_id):
            records += group.build_tombstones()
            timers += [Timer(key, None) for key in group.timer_keys()]
    return Outcome(tuple(records), None, tuple(timers))


def expiration_timer(view: GroupView, now: int) -> Timer:
    """Return the timer of the next check for expired offsets."""
    return Timer("expire offsets", now + view.settings.offsets_retention_check_interval_ms, ExpireOffsets())


def _expired(view: GroupView, group: Group, now: int) -> list[tuple[str, int]]:
    removed = []
    pending = view.pending(group.id)
    for (topic, index), value in view.offsets(group.id).items():
        begins = group.retention_begins(value.commit_timestamp)
        if begins is None:
            break  # The group keeps all its offsets.
        if value.expire_timestamp >= 0:
            over = now >= value.expire_timestamp
        else:
            over = now - begins >= view.settings.offsets_retention_ms
        if over and not group.is_subscribed_to(topic) and (topic, index) not in pending:
            removed.append((topic, index))
    return removed


def forgetting_key(topics: Sequence[tuple[str, bytes]]) -> Hashable:
    """Return the timer key of topics that are deleted together."""
    return "topics deleted", topics[0][1]


def forget_topics(view: GroupView, event: TopicsDeleted, now: int) -> Outcome[Record, None]:
    """Delete the offsets of deleted topics; another topic of the same name keeps its offsets.

    If there are many, the rest is deleted in the next iteration of the loop.
    """
    deleted = dict(event.topics)
    records: list[GroupRecord] = []
    for group_id in view.groups:
        if len(records) >= MOST_REMOVED:
            return Outcome(tuple(records), None, (Timer(forgetting_key(event.topics), now, event),))
        removed: dict[tuple[str, int], None] = {}
        for partition, value in view.offsets(group_id).items():
            if _is_of(deleted, partition[0], value):
                removed[partition] = None
        for partition, of_producers in view.pending(group_id).items():
            if any(_is_of(deleted, partition[0], offset.value) for offset in of_producers.values()):
                removed[partition] = None
        records += [build_offset_tombstone(group_id, *partition) for partition in removed]
    return Outcome(tuple(records), None)


def _is_of(topics: Mapping[str, bytes], topic: str, value: OffsetCommitValue) -> bool:
    """Return whether an offset belongs to one of these topics, and not to another topic of the same name."""
    topic_id = topics.get(topic)
    return topic_id is not None and value.topic_id in (ZERO_UUID, topic_id)


def simple_group(group_id: str, since_ms: int | None) -> ClassicGroup:
    """Return a group that only stores offsets."""
    return ClassicGroup(id=GroupId(group_id), since_ms=since_ms)
