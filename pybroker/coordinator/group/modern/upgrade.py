"""Upgrade of a classic group to a consumer group, while its members continue.

Owns the conditions and the conversion of members. A member's generation becomes its epoch, the leader's assignment
becomes target and current assignment, and `classic_members` serves the member. The upgrade itself revokes no partition.

In Kafka a member's current assignment is its last one, and none in the middle of a rebalance. Here it includes the
owned partitions in its metadata: with a cooperative assignor a member continues to read them until its next SyncGroup
(`docs/adr/0016-where-consumer-groups-differ-from-kafkas.md`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.classic.draft import GroupDraft
from pybroker.coordinator.group.classic.group import MOST_ELEMENTS
from pybroker.coordinator.group.errors import GroupIdNotFoundError
from pybroker.coordinator.group.modern.decision import Decision
from pybroker.coordinator.group.modern.group import ConsumerGroup
from pybroker.coordinator.group.modern.member import ClassicMember, ClassicProtocol, Member
from pybroker.coordinator.group.modern.records import (
    build_current,
    build_epoch,
    build_subscription,
    build_target,
    build_target_epoch,
)
from pybroker.coordinator.group.modern.subscription import metadata_hash
from pybroker.coordinator.group.reconciled.timers import session_timer
from pybroker.protocol.errors import ErrorCode, MalformedMessage
from pybroker.protocol.messages.consumer_protocol import decode_framed
from pybroker.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from pybroker.protocol.messages.consumer_protocol_assignment import TopicPartition as Assigned
from pybroker.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from pybroker.protocol.messages.consumer_protocol_subscription import TopicPartition as Claimed
from pybroker.protocol.messages.join_group import JoinGroupResponse
from pybroker.protocol.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pybroker.coordinator.group.classic.group import ClassicGroup
    from pybroker.coordinator.group.classic.members import ClassicMember as MemberBefore
    from pybroker.coordinator.group.modern.member import Held
    from pybroker.coordinator.group.view import GroupView


def replace_classic(group: ClassicGroup) -> Decision:
    """Delete a classic group without members, and begin a consumer group in its place; offsets are kept."""
    decision = Decision(ConsumerGroup(group.id))
    decision.replace_classic(group)
    return decision


def upgrade(view: GroupView, group: ClassicGroup, now: int) -> Decision:
    """Convert a classic group to a consumer group; raises `GroupIdNotFoundError` if this is not allowed."""
    _check(view, group)
    members = _members(view, group)
    decision = replace_classic(group)
    waiting = GroupDraft(group, view.settings, now)
    for member_id in group.members:
        waiting.complete_join(
            member_id, JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, member_id=member_id)
        )
        waiting.complete_sync(member_id, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    decision.responses += waiting.outcome(None).responses
    names = frozenset[str]().union(*(member.topics for member in members))
    decision.write(build_subscription(group.id, member) for member in members)
    decision.write([build_epoch(group.id, group.generation, metadata_hash(names, view.topics))])
    decision.write(
        build_target(
            group.id, member.member_id, {topic: frozenset(partitions) for topic, partitions in member.assigned.items()}
        )
        for member in members
    )
    decision.write([build_target_epoch(group.id, group.generation, 0)])
    decision.write(build_current(group.id, member) for member in members)
    decision.timers += (
        session_timer(group.id, member.id, now + member.session_timeout_ms) for member in group.members.in_order()
    )
    return decision


def _check(view: GroupView, group: ClassicGroup) -> None:
    if not view.settings.consumer.migration_policy.allows_upgrade:
        raise _refusal(group, "online upgrade is disabled.")
    if not group.uses_consumer_protocol:
        raise _refusal(group, "the group does not use the consumer embedded protocol.")
    if len(group.members) > view.settings.consumer.max_size:
        raise _refusal(group, "the group size exceeds the consumer group maximum size.")


def _members(view: GroupView, group: ClassicGroup) -> list[Member]:
    taken: set[tuple[str, int]] = set()
    try:
        subscriptions = {member.id: _subscription(group, member) for member in group.members.in_order()}
        # Assigned partitions take precedence over claimed ones.
        reported = [(member.id, _assigned(group, member)) for member in group.members.in_order()]
        reported += [(member_id, subscription.owned_partitions) for member_id, subscription in subscriptions.items()]
    except MalformedMessage:
        raise _refusal(group, "the embedded consumer protocol is malformed.") from None
    has: dict[str, dict[bytes, dict[int, int]]] = {member_id: {} for member_id in group.members}
    for member_id, topics in reported:
        for topic in topics:
            info = view.topics.get(topic.topic)
            free = [partition for partition in topic.partitions if (topic.topic, partition) not in taken]
            if info is not None and free:
                has[member_id].setdefault(info.topic_id, {}).update(dict.fromkeys(free, group.generation))
                taken.update((topic.topic, partition) for partition in free)
    return [_member(group, member, subscriptions[member.id], has[member.id]) for member in group.members.in_order()]


def _member(group: ClassicGroup, before: MemberBefore, subscription: ConsumerProtocolSubscription, has: Held) -> Member:
    return Member(
        before.id,
        epoch=group.generation,
        previous_epoch=group.generation,
        instance_id=before.instance_id,
        rack_id=subscription.rack_id or None,
        rebalance_timeout_ms=before.rebalance_timeout_ms,
        client_id=before.client_id,
        client_host=before.client_host,
        topics=frozenset(subscription.topics),
        assigned=has,
        classic=ClassicMember(before.session_timeout_ms, tuple(ClassicProtocol(*offer) for offer in before.protocols)),
    )


def _subscription(group: ClassicGroup, member: MemberBefore) -> ConsumerProtocolSubscription:
    # During a rebalance, the first one or a later one, a member need not support the protocol chosen before.
    metadata = dict(member.protocols).get(group.protocol or "", member.protocols[0][1])
    return decode_framed(ConsumerProtocolSubscription, metadata, most_elements=MOST_ELEMENTS)


def _assigned(group: ClassicGroup, member: MemberBefore) -> Sequence[Assigned | Claimed]:
    if not member.assignment:
        return ()
    assignment = decode_framed(ConsumerProtocolAssignment, member.assignment, most_elements=MOST_ELEMENTS)
    if assignment.user_data:
        raise _refusal(
            group,
            "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default "
            "assignor before re-attempting the upgrade.",
        )
    return assignment.assigned_partitions


def _refusal(group: ClassicGroup, why: str) -> GroupIdNotFoundError:
    return GroupIdNotFoundError(f"Cannot upgrade classic group {group.id} to consumer group because {why}")
