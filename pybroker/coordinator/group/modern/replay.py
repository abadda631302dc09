"""What each record does to a consumer group.

Owns the one way by which a group changes: load and leader come here alike. Decides nothing, and takes a log that
compaction has thinned out: a tombstone of something that is not there does nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pybroker.coordinator.group.modern.group import NO_TARGET_EPOCH, ConsumerGroup
from pybroker.coordinator.group.modern.member import LEAVE_EPOCH, ClassicMember, ClassicProtocol, Member, MemberState
from pybroker.coordinator.group.modern.regex import ResolvedRegex
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
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeVar

    from pybroker.coordinator.group.modern.member import Held, Owned
    from pybroker.coordinator.group.records import GroupRecord
    from pybroker.protocol.schema import Message

    K = TypeVar("K")
    V = TypeVar("V")

_AHEAD = "_ahead"
_FOLLOWS_FROM_SUBSCRIPTIONS = (
    "static_members",
    "regex_subscribers",
    "classic_members",
    "subscriptions",
    "subscribed_topics",
    "_seen",
)

_STATES = {int(state): state for state in MemberState}


def replay(group: ConsumerGroup | None, key: Message, value: Message | None) -> ConsumerGroup | None:
    """Return the group after a record of `RECORD_KEYS`; None where it is gone. `group` is None where there was none."""
    if group is None:
        if value is None:
            return None
        group = ConsumerGroup(key.group_id)  # type: ignore[attr-defined]  # every key of RECORD_KEYS has it
    ahead = group.__dict__.get(_AHEAD)
    if ahead is not None and ahead[0] is key:
        return ahead[1]  # type: ignore[no-any-return]  # what `replay_ahead` has put there
    return _CHANGES[type(key)](group, key, value)


def replay_ahead(group: ConsumerGroup, record: GroupRecord) -> ConsumerGroup:
    """Return the group after a record that is yet to be committed, and keep it for when it is."""
    after = _CHANGES[type(record.key)](group, record.key, record.value)
    assert after is not None
    group.__dict__[_AHEAD] = record.key, after
    return after


def replay_targets_ahead(
    group: ConsumerGroup, targets: Mapping[str, Owned], records: Iterable[GroupRecord]
) -> ConsumerGroup:
    """As `replay_ahead`, of the records that give members these targets, one each.

    They are committed together, so what stands between two of them is seen by nobody and has the targets of all: ten
    thousand new targets cost one walk over the group's.
    """
    all_targets = {**group.targets, **targets}
    for record in records:
        after = _with_same_subscriptions(group, targets=all_targets)
        group.__dict__[_AHEAD] = record.key, after
        group = after
    return group


def _change_epoch(
    group: ConsumerGroup, _key: ConsumerGroupMetadataKey, value: ConsumerGroupMetadataValue | None
) -> ConsumerGroup | None:
    if value is None:
        return None
    return _with_same_subscriptions(group, epoch=value.epoch, metadata_hash=value.metadata_hash)


def _change_partition_metadata(
    group: ConsumerGroup, _key: ConsumerGroupPartitionMetadataKey, value: ConsumerGroupPartitionMetadataValue | None
) -> ConsumerGroup:
    return msgspec.structs.replace(group, has_partition_metadata=value is not None)


def _change_subscription(
    group: ConsumerGroup, key: ConsumerGroupMemberMetadataKey, value: ConsumerGroupMemberMetadataValue | None
) -> ConsumerGroup:
    if value is None:
        return _without_member(group, key.member_id)
    return _with_member(
        group,
        msgspec.structs.replace(
            group.members.get(key.member_id) or Member(key.member_id),
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=frozenset(value.subscribed_topic_names),
            regex=value.subscribed_topic_regex or "",
            assignor=value.server_assignor,
            classic=None if value.classic_member_metadata is None else _classic(value.classic_member_metadata),
        ),
    )


def _change_target_epoch(
    group: ConsumerGroup,
    _key: ConsumerGroupTargetAssignmentMetadataKey,
    value: ConsumerGroupTargetAssignmentMetadataValue | None,
) -> ConsumerGroup:
    if value is None:
        return _with_same_subscriptions(group, assignment_epoch=NO_TARGET_EPOCH, assignment_ms=0)
    return _with_same_subscriptions(
        group, assignment_epoch=value.assignment_epoch, assignment_ms=value.assignment_timestamp
    )


def _change_target(
    group: ConsumerGroup,
    key: ConsumerGroupTargetAssignmentMemberKey,
    value: ConsumerGroupTargetAssignmentMemberValue | None,
) -> ConsumerGroup:
    if value is None:
        return _with_same_subscriptions(group, targets=_without(group.targets, key.member_id))
    target = {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}
    return _with_same_subscriptions(group, targets={**group.targets, key.member_id: target})


def _change_current(
    group: ConsumerGroup,
    key: ConsumerGroupCurrentMemberAssignmentKey,
    value: ConsumerGroupCurrentMemberAssignmentValue | None,
) -> ConsumerGroup:
    before = group.members.get(key.member_id)
    if value is None:
        if before is None:
            return group
        gone = msgspec.structs.replace(before, epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned={}, revoking={})
        return _with_moved(group, before, gone)
    return _with_moved(
        group,
        before,
        msgspec.structs.replace(
            before or Member(key.member_id),
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=_STATES.get(value.state, MemberState.UNKNOWN),
            assigned=_held(value.assigned_partitions, value.member_epoch),
            revoking=_held(value.partitions_pending_revocation, value.member_epoch),
        ),
    )


def _change_regex(
    group: ConsumerGroup, key: ConsumerGroupRegularExpressionKey, value: ConsumerGroupRegularExpressionValue | None
) -> ConsumerGroup:
    if value is None:
        return msgspec.structs.replace(group, regexes=_without(group.regexes, key.regular_expression))
    resolved = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
    return msgspec.structs.replace(group, regexes={**group.regexes, key.regular_expression: resolved})


def _with_member(group: ConsumerGroup, member: Member) -> ConsumerGroup:
    before = group.members.get(member.member_id)
    epochs = _move_epochs(group.partition_epochs, before, member)
    members = {**group.members, member.member_id: member}
    after = msgspec.structs.replace(group, members=members, partition_epochs=epochs)
    _follow(group, after, before or Member(member.member_id), member, is_new=before is None)
    return after


def _follow(group: ConsumerGroup, after: ConsumerGroup, before: Member, member: Member, *, is_new: bool) -> None:
    """Hand on what was worked out from all members, with what one that came or changed makes different.

    Otherwise ten thousand members that join would each cost a walk over all.
    """
    known, kept = group.__dict__, after.__dict__
    same_topics = False
    if (counts := known.get("subscriptions")) is not None:
        same_topics = member.topics in counts and (
            is_new or before.topics == member.topics or counts[before.topics] > 1
        )
        changed = dict(counts)
        changed[member.topics] = changed.get(member.topics, 0) + 1
        if not is_new:
            changed[before.topics] -= 1
            if not changed[before.topics]:
                del changed[before.topics]
        kept["subscriptions"] = changed
    if (classic := known.get("classic_members")) is not None:
        left = not is_new and before.classic is not None
        kept["classic_members"] = classic + (member.classic is not None) - left
    unchanged = [
        ("static_members", before.instance_id == member.instance_id),
        ("regex_subscribers", before.regex == member.regex),
        ("subscribed_topics", same_topics),
        ("_seen", same_topics),
    ]
    for name, holds in unchanged:
        if holds and name in known:
            kept[name] = known[name]


def _with_moved(group: ConsumerGroup, before: Member | None, after: Member) -> ConsumerGroup:
    """Put a member in its place that has moved on its way to the target and wants what it wanted."""
    if before is None:
        return _with_member(group, after)
    return _with_same_subscriptions(
        group,
        members={**group.members, after.member_id: after},
        partition_epochs=_move_epochs(group.partition_epochs, before, after),
    )


def _with_same_subscriptions(group: ConsumerGroup, **changes: Any) -> ConsumerGroup:
    """Change what no subscription depends on: what was worked out from those is known of the next value as well.

    Otherwise each step of each member to the target would cost a walk over all members.
    """
    after = msgspec.structs.replace(group, **changes)
    known, kept = group.__dict__, after.__dict__
    for name in _FOLLOWS_FROM_SUBSCRIPTIONS:
        if name in known:
            kept[name] = known[name]
    return after


def _without_member(group: ConsumerGroup, member_id: str) -> ConsumerGroup:
    before = group.members.get(member_id)
    if before is None:
        return group
    epochs = _move_epochs(group.partition_epochs, before, None)
    return msgspec.structs.replace(group, members=_without(group.members, member_id), partition_epochs=epochs)


def _move_epochs(
    epochs: Mapping[bytes, Mapping[int, int]], before: Member | None, after: Member | None
) -> Mapping[bytes, Mapping[int, int]]:
    """Return the owners' epochs after a member has changed; the same object when nothing has for them.

    What the member had is taken away only where the epoch is still its own: a record of the next owner may stand before
    that of the last one where compaction has thinned the log out.
    """
    if before is not None and after is not None and _has_the_same(before, after):
        return epochs
    changed: dict[bytes, dict[int, int]] = {}

    def of(topic: bytes) -> dict[int, int]:
        if topic not in changed:
            changed[topic] = dict(epochs.get(topic, {}))
        return changed[topic]

    for topic, partition in () if before is None else _partitions(before):
        if of(topic).get(partition) == before.epoch:  # type: ignore[union-attr]  # there are none without a member
            del changed[topic][partition]
    for topic, partition in () if after is None else _partitions(after):
        of(topic)[partition] = after.epoch  # type: ignore[union-attr]  # as above
    return {topic: kept for topic, kept in {**epochs, **changed}.items() if kept}


def _has_the_same(one: Member, other: Member) -> bool:
    return one.epoch == other.epoch and one.assigned == other.assigned and one.revoking == other.revoking


def _partitions(member: Member) -> Sequence[tuple[bytes, int]]:
    return [
        (topic, partition)
        for held in (member.assigned, member.revoking)
        for topic, partitions in held.items()
        for partition in partitions
    ]


def _held(topics: Sequence[TopicPartitions], epoch: int) -> Held:
    """Read partitions with the epochs that they were given in; brokers before Kafka 4.3 did not write these down."""
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


def _without(mapping: Mapping[K, V], key: K) -> Mapping[K, V]:
    return {other: value for other, value in mapping.items() if other != key}


_CHANGES: dict[type[Message], Callable[[ConsumerGroup, Any, Any], ConsumerGroup | None]] = {
    ConsumerGroupMetadataKey: _change_epoch,
    ConsumerGroupPartitionMetadataKey: _change_partition_metadata,
    ConsumerGroupMemberMetadataKey: _change_subscription,
    ConsumerGroupTargetAssignmentMetadataKey: _change_target_epoch,
    ConsumerGroupTargetAssignmentMemberKey: _change_target,
    ConsumerGroupCurrentMemberAssignmentKey: _change_current,
    ConsumerGroupRegularExpressionKey: _change_regex,
}

RECORD_KEYS = tuple(_CHANGES)
"""The keys of the records that are replayed here."""
