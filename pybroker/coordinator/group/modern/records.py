"""Builds the records of consumer groups from values.

Owns the order of fields' elements, and the order of the tombstones of a member or a group: dependent records first, as
Kafka's replay requires. Must not know why a record is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.records import GroupRecord
from pybroker.protocol.messages.group_records.consumer_group_current_member_assignment import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from pybroker.protocol.messages.group_records.consumer_group_member_metadata import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
)
from pybroker.protocol.messages.group_records.consumer_group_metadata import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from pybroker.protocol.messages.group_records.consumer_group_partition_metadata import ConsumerGroupPartitionMetadataKey
from pybroker.protocol.messages.group_records.consumer_group_regular_expression import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from pybroker.protocol.messages.group_records.consumer_group_target_assignment_member import (
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from pybroker.protocol.messages.group_records.consumer_group_target_assignment_metadata import (
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pybroker.coordinator.group.modern.member import ClassicMember, Held, Member, Owned
    from pybroker.coordinator.group.modern.regex import ResolvedRegex

_MOST_SORTED = 10_000
"""More names than this are not sorted: sorting a hundred thousand blocks the loop for 100 ms."""


def _in_order(names: frozenset[str]) -> list[str]:
    """Return names in sorted order, as Kafka writes them for readability. On replay they are a set."""
    return sorted(names) if len(names) <= _MOST_SORTED else list(names)


def build_subscription(group_id: str, member: Member) -> GroupRecord:
    """Return the record of a member's metadata and subscription."""
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=_in_order(member.topics),
        subscribed_topic_regex=member.regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=None if member.classic is None else _classic(member.classic),
    )
    return GroupRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def build_current(group_id: str, member: Member) -> GroupRecord:
    """Return the record of a member's current assignment."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=_held(member.assigned),
        partitions_pending_revocation=_held(member.revoking),
    )
    return GroupRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


def build_target(group_id: str, member_id: str, target: Owned) -> GroupRecord:
    """Return the record of a member's target assignment."""
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            TopicPartition(topic_id=topic, partitions=sorted(partitions))
            for topic, partitions in sorted(target.items())
        ]
    )
    return GroupRecord(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def build_target_epoch(group_id: str, epoch: int, now: int) -> GroupRecord:
    """Return the record of the target assignment's epoch."""
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=now)
    return GroupRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def build_epoch(group_id: str, epoch: int, metadata_hash: int) -> GroupRecord:
    """Return the record of the group's epoch."""
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return GroupRecord(ConsumerGroupMetadataKey(group_id=group_id), value)


def build_regex(group_id: str, regex: str, resolved: ResolvedRegex) -> GroupRecord:
    """Return the record of a resolved regular expression."""
    value = ConsumerGroupRegularExpressionValue(
        topics=_in_order(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
    )
    return GroupRecord(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), value)


def build_regex_tombstone(group_id: str, regex: str) -> GroupRecord:
    """Return the record that deletes a regular expression."""
    return GroupRecord(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), None)


def build_partition_metadata_tombstone(group_id: str) -> GroupRecord:
    """Return the record that deletes the partition metadata of Kafka 4.0."""
    return GroupRecord(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def build_member_tombstones(group_id: str, member_id: str) -> Iterator[GroupRecord]:
    """Yield the records that delete a member."""
    yield _current_tombstone(group_id, member_id)
    yield _target_tombstone(group_id, member_id)
    yield _subscription_tombstone(group_id, member_id)


def build_group_tombstones(group_id: str, member_ids: Iterable[str], regexes: Iterable[str]) -> Iterator[GroupRecord]:
    """Yield the records that delete a group."""
    members = tuple(member_ids)
    yield from (_current_tombstone(group_id, member_id) for member_id in members)
    yield from (_target_tombstone(group_id, member_id) for member_id in members)
    yield GroupRecord(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None)
    yield from (_subscription_tombstone(group_id, member_id) for member_id in members)
    yield from (build_regex_tombstone(group_id, regex) for regex in regexes)
    yield build_partition_metadata_tombstone(group_id)
    yield GroupRecord(ConsumerGroupMetadataKey(group_id=group_id), None)


def _current_tombstone(group_id: str, member_id: str) -> GroupRecord:
    return GroupRecord(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)


def _target_tombstone(group_id: str, member_id: str) -> GroupRecord:
    return GroupRecord(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)


def _subscription_tombstone(group_id: str, member_id: str) -> GroupRecord:
    return GroupRecord(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def _held(held: Held) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic_id=topic, partitions=list(epochs), assignment_epochs=list(epochs.values()))
        for topic, epochs in ((topic, dict(sorted(epochs.items()))) for topic, epochs in sorted(held.items()))
    ]


def _classic(classic: ClassicMember) -> ClassicMemberMetadata:
    return ClassicMemberMetadata(
        session_timeout_ms=classic.session_timeout_ms,
        supported_protocols=[
            ClassicProtocol(name=protocol.name, metadata=protocol.metadata) for protocol in classic.protocols
        ],
    )
