"""Applies records to a consumer group.

Owns the only functions that change a group, while its records are loaded and as leader. Decides nothing. Accepts a
compacted log: a tombstone of a missing entry does nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pybroker.coordinator.group.modern.draft import ConsumerGroupDraft
from pybroker.coordinator.group.modern.group import ConsumerGroup
from pybroker.coordinator.group.modern.member import ClassicMember, ClassicProtocol, Member, MemberState
from pybroker.coordinator.group.modern.regex import ResolvedRegex
from pybroker.coordinator.group.reconciled.group import NO_EPOCH
from pybroker.coordinator.group.reconciled.member import LEAVE_EPOCH
from pybroker.coordinator.group.reconciled.replay import Replay, keep_ahead
from pybroker.protocol.messages.group_records.consumer_group_current_member_assignment import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from pybroker.protocol.messages.group_records.consumer_group_member_metadata import (
    ClassicMemberMetadata,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
)
from pybroker.protocol.messages.group_records.consumer_group_metadata import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from pybroker.protocol.messages.group_records.consumer_group_partition_metadata import (
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
)
from pybroker.protocol.messages.group_records.consumer_group_regular_expression import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from pybroker.protocol.messages.group_records.consumer_group_target_assignment_member import (
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
)
from pybroker.protocol.messages.group_records.consumer_group_target_assignment_metadata import (
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pybroker.coordinator.group.modern.member import Held, Owned
    from pybroker.coordinator.group.records import GroupRecord
    from pybroker.protocol.schema import Message

_STATES = {int(state): state for state in MemberState}


def _change_epoch(draft: ConsumerGroupDraft, _key: ConsumerGroupMetadataKey, value: ConsumerGroupMetadataValue) -> None:
    draft.set(epoch=value.epoch, metadata_hash=value.metadata_hash)


def _change_partition_metadata(
    draft: ConsumerGroupDraft,
    _key: ConsumerGroupPartitionMetadataKey,
    value: ConsumerGroupPartitionMetadataValue | None,
) -> None:
    draft.set(has_partition_metadata=value is not None)


def _change_subscription(
    draft: ConsumerGroupDraft, key: ConsumerGroupMemberMetadataKey, value: ConsumerGroupMemberMetadataValue | None
) -> None:
    if value is None:
        draft.drop_member(key.member_id)
        return
    draft.put_member(
        msgspec.structs.replace(
            draft.members.get(key.member_id) or Member(key.member_id),
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=frozenset(value.subscribed_topic_names),
            regex=value.subscribed_topic_regex or "",
            assignor=value.server_assignor,
            classic=None if value.classic_member_metadata is None else _classic(value.classic_member_metadata),
        )
    )


def _change_target_epoch(
    draft: ConsumerGroupDraft,
    _key: ConsumerGroupTargetAssignmentMetadataKey,
    value: ConsumerGroupTargetAssignmentMetadataValue | None,
) -> None:
    if value is None:
        draft.set(assignment_epoch=NO_EPOCH, assignment_ms=0)
    else:
        draft.set(assignment_epoch=value.assignment_epoch, assignment_ms=value.assignment_timestamp)


def _change_target(
    draft: ConsumerGroupDraft,
    key: ConsumerGroupTargetAssignmentMemberKey,
    value: ConsumerGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        draft.drop_target(key.member_id)
    else:
        draft.put_target(
            key.member_id, {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}
        )


def _change_current(
    draft: ConsumerGroupDraft,
    key: ConsumerGroupCurrentMemberAssignmentKey,
    value: ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    before = draft.members.get(key.member_id)
    if value is None:
        if before is not None:
            draft.move_member(
                msgspec.structs.replace(before, epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned={}, revoking={})
            )
        return
    draft.move_member(
        msgspec.structs.replace(
            before or Member(key.member_id),
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=_STATES.get(value.state, MemberState.UNKNOWN),
            assigned=_held(value.assigned_partitions, value.member_epoch),
            revoking=_held(value.partitions_pending_revocation, value.member_epoch),
        )
    )


def _change_regex(
    draft: ConsumerGroupDraft,
    key: ConsumerGroupRegularExpressionKey,
    value: ConsumerGroupRegularExpressionValue | None,
) -> None:
    resolved = None if value is None else ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
    draft.put_regex(key.regular_expression, resolved)


def _held(topics: Sequence[TopicPartitions], epoch: int) -> Held:
    """Return partitions with the epochs of their assignment, which brokers before Kafka 4.3 did not write."""
    held = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [max(epoch, 0)] * len(topic.partitions)
        held[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return held


def _classic(metadata: ClassicMemberMetadata) -> ClassicMember:
    protocols = tuple(ClassicProtocol(protocol.name, protocol.metadata) for protocol in metadata.supported_protocols)
    return ClassicMember(metadata.session_timeout_ms, protocols)


_CHANGES: dict[type[Message], Callable[[ConsumerGroupDraft, Any, Any], None]] = {
    ConsumerGroupMetadataKey: _change_epoch,
    ConsumerGroupPartitionMetadataKey: _change_partition_metadata,
    ConsumerGroupMemberMetadataKey: _change_subscription,
    ConsumerGroupTargetAssignmentMetadataKey: _change_target_epoch,
    ConsumerGroupTargetAssignmentMemberKey: _change_target,
    ConsumerGroupCurrentMemberAssignmentKey: _change_current,
    ConsumerGroupRegularExpressionKey: _change_regex,
}

REPLAY = Replay(ConsumerGroup, ConsumerGroupDraft, _CHANGES, ConsumerGroupMetadataKey)
replay = REPLAY.replay


def replay_targets_ahead(
    group: ConsumerGroup, targets: Mapping[str, Owned], records: Sequence[GroupRecord]
) -> ConsumerGroup:
    """Do the same as `Replay.replay_ahead` for targets: `records` has one record for each member in `targets`."""
    if not records:
        return group
    draft = ConsumerGroupDraft(group)
    for member_id, target in targets.items():
        draft.put_target(member_id, target)
    return keep_ahead(group, records, draft.build())
