"""Members of the classic protocol in a consumer group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Owns the translation between the protocols. A member's generation is its epoch. If a member of KIP-848 would get another
assignment, this member receives REBALANCE_IN_PROGRESS and rejoins: JoinGroup moves it to its next epoch, and SyncGroup
returns its assignment. There is no leader, and neither request is delayed. A member that does not rejoin within its
rebalance timeout is fenced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.group.classic.join import FIRST_VERSION_WITH_KNOWN_ID, rebalance_timeout
from pybroker.coordinator.group.errors import (
    GroupError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    UnknownMemberIdError,
)
from pybroker.coordinator.group.modern.classic_assignment import encode_assignment
from pybroker.coordinator.group.modern.decision import Decision
from pybroker.coordinator.group.modern.downgrade import downgrade, may_downgrade_replacing
from pybroker.coordinator.group.modern.group import PROTOCOL_TYPE, ConsumerGroup, ConsumerGroupState
from pybroker.coordinator.group.modern.heartbeat import complete
from pybroker.coordinator.group.modern.leave import fence
from pybroker.coordinator.group.modern.member import ClassicMember, ClassicProtocol, Member, MemberState
from pybroker.coordinator.group.modern.settings import MigrationPolicy
from pybroker.coordinator.group.reconciled.membership import check_group_size, check_instance, find_or_replace
from pybroker.coordinator.group.reconciled.timers import MemberSilent, join_key, session_timer, sync_key
from pybroker.machine.machine import Outcome, Timer
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.consumer_protocol import decode_framed
from pybroker.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from pybroker.protocol.messages.heartbeat import HeartbeatResponse
from pybroker.protocol.messages.join_group import JoinGroupResponse
from pybroker.protocol.messages.leave_group import LeaveGroupResponse, MemberResponse
from pybroker.protocol.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pybroker.coordinator.group.events import Heartbeat, JoinGroup, LeaveGroup, SyncGroup
    from pybroker.coordinator.group.group_change import Record
    from pybroker.coordinator.group.modern.member import Owned
    from pybroker.coordinator.group.view import GroupView, TopicInfo
    from pybroker.protocol.messages.consumer_protocol_subscription import TopicPartition
    from pybroker.protocol.messages.join_group import JoinGroupRequest
    from pybroker.protocol.messages.leave_group import MemberIdentity


def join(view: GroupView, event: JoinGroup, now: int, group: ConsumerGroup) -> Outcome[Record, JoinGroupResponse]:
    """Decide about a JoinGroup."""
    request = event.request
    if view.settings.consumer.migration_policy is MigrationPolicy.DISABLED:
        raise InconsistentGroupProtocolError(
            f"Cannot join the consumer group {group.id} with the classic protocol because the group migration is "
            "disabled."
        )
    member_id = request.member_id or event.fresh_id
    check_group_size(group, member_id, view.settings.consumer.max_size)
    if not _supports(group, request):
        raise InconsistentGroupProtocolError(f"Member {member_id}'s protocols are not supported.")
    if not request.member_id and request.group_instance_id is None and event.version >= FIRST_VERSION_WITH_KNOWN_ID:
        return Outcome((), JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id))
    decision = Decision(group)
    joins = request.group_instance_id is None or not request.member_id
    before = find_or_replace(decision, member_id, request.group_instance_id, joins=joins, classic=True)
    subscription = decode_framed(ConsumerProtocolSubscription, request.protocols[0].metadata)
    wants = _updated(before, event, subscription)
    owned = _owned(subscription.owned_partitions, view.topics)
    replaced = group.static_member(request.group_instance_id)
    is_last = replaced is not None and may_downgrade_replacing(view, group, replaced)
    after = complete(decision, view, before, wants, owned, now, assigns=not is_last)
    if is_last:
        _downgrade(decision, view, now)
    else:
        decision.timers += (
            Timer(join_key(group.id, member_id), None),
            session_timer(group.id, member_id, now + request.session_timeout_ms),
            _fencing_timer(sync_key(group.id, member_id), after, group.id, now),
        )
    return decision.outcome(
        JoinGroupResponse(
            member_id=member_id,
            generation_id=after.epoch,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=request.protocols[0].name,
        )
    )


def sync(view: GroupView, event: SyncGroup, now: int, group: ConsumerGroup) -> Outcome[Record, SyncGroupResponse]:
    """Decide about a SyncGroup."""
    request = event.request
    member, classic = _member(group, request.member_id, request.group_instance_id)
    _check_generation(member, request.generation_id)
    if request.protocol_type is not None and request.protocol_type != PROTOCOL_TYPE:
        raise InconsistentGroupProtocolError(
            f"The protocol type {request.protocol_type} from member {member.member_id} request is not equal to the "
            f"group protocol type {PROTOCOL_TYPE}."
        )
    offer = classic.protocols[0]
    if request.protocol_name is not None and request.protocol_name != offer.name:
        raise InconsistentGroupProtocolError(
            f"The protocol name {request.protocol_name} from member {member.member_id} request is not equal to the "
            f"protocol name {offer.name} returned in the join response."
        )
    if group.assignment_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        overdue = _rejoin_timer(member, group.id, now)
        return Outcome((), SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS), (overdue,))
    reply = SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=encode_assignment(member.assigned, offer.metadata, view.topic_by_id),
    )
    session = session_timer(group.id, member.member_id, now + classic.session_timeout_ms)
    return Outcome((), reply, (Timer(sync_key(group.id, member.member_id), None), session))


def heartbeat(_view: GroupView, event: Heartbeat, now: int, group: ConsumerGroup) -> Outcome[Record, HeartbeatResponse]:
    """Decide about a Heartbeat; its response requests that the member rejoins."""
    request = event.request
    member, classic = _member(group, request.member_id, request.group_instance_id)
    _check_generation(member, request.generation_id)
    session = session_timer(group.id, member.member_id, now + classic.session_timeout_ms)
    if not _has_to_rejoin(group, member):
        return Outcome((), HeartbeatResponse(), (session,))
    reply = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    return Outcome((), reply, (session, _rejoin_timer(member, group.id, now)))


def leave(view: GroupView, event: LeaveGroup, now: int, group: ConsumerGroup) -> Outcome[Record, LeaveGroupResponse]:
    """Decide about members that leave, each by itself; their records are written together."""
    leaving: dict[str, Member] = {}
    responses = []
    for identity in event.request.members:
        response = MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id)
        try:
            member = _leaving(group, identity)
            leaving[member.member_id] = member
        except GroupError as error:
            response.error_code = error.code
        responses.append(response)
    return fence(view, group, list(leaving.values()), now).outcome(LeaveGroupResponse(members=responses))


def _supports(group: ConsumerGroup, request: JoinGroupRequest) -> bool:
    """Return whether all members of the classic protocol, including the new one, support a common assignor."""
    if request.protocol_type != PROTOCOL_TYPE:
        return False
    offers = [
        {offer.name for offer in member.classic.protocols}
        for member in group.members.values()
        if member.classic is not None
    ]
    return any(all(protocol.name in names for names in offers) for protocol in request.protocols)


def _updated(before: Member, event: JoinGroup, subscription: ConsumerProtocolSubscription) -> Member:
    request, client = event.request, event.client
    timeout_ms = rebalance_timeout(event)
    offers = tuple(ClassicProtocol(protocol.name, protocol.metadata) for protocol in request.protocols)
    return msgspec.structs.replace(
        before,
        instance_id=before.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=subscription.rack_id or before.rack_id,
        rebalance_timeout_ms=before.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topics=frozenset(subscription.topics),
        regex="",
        client_id=client.client_id,
        client_host=client.client_host,
        classic=ClassicMember(request.session_timeout_ms, offers),
    )


def _owned(reported: Sequence[TopicPartition], topics: Mapping[str, TopicInfo]) -> Owned:
    return {
        topics[topic.topic].topic_id: frozenset(topic.partitions)
        for topic in reported
        if topic.topic in topics and topic.partitions
    }


def _downgrade(decision: Decision, view: GroupView, now: int) -> None:
    group = decision.group
    completed = group.state is ConsumerGroupState.STABLE
    why = None if completed else f"Downgrade group {group.id} from consumer to classic with stale assignment."
    downgrade(decision, view, list(group.members.values()), why, now)


def _member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> tuple[Member, ClassicMember]:
    if instance_id is None:
        member = group.member(member_id)
    else:
        holder = group.static_member(instance_id)
        if holder is None:
            raise UnknownMemberIdError(f"Member with instance id {instance_id} is not a member of group {group.id}.")
        check_instance(holder, member_id, instance_id)
        member = holder
    if member.classic is None:
        raise UnknownMemberIdError(f"Member {member.member_id} does not use the classic protocol.")
    return member, member.classic


def _check_generation(member: Member, generation: int) -> None:
    if generation != member.epoch:
        raise IllegalGenerationError(
            f"The request generation id {generation} is not equal to the member epoch {member.epoch} of member "
            f"{member.member_id}."
        )


def _has_to_rejoin(group: ConsumerGroup, member: Member) -> bool:
    if member.epoch < group.assignment_epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    if member.state is not MemberState.UNRELEASED_PARTITIONS:
        return False
    # It waits for other members. It can take a partition as soon as one of them has revoked it.
    return not any(
        partition not in member.assigned.get(topic, ()) and group.partition_epoch(topic, partition) != -1
        for topic, partitions in group.targets.get(member.member_id, {}).items()
        for partition in partitions
    )


def _leaving(group: ConsumerGroup, identity: MemberIdentity) -> Member:
    if identity.group_instance_id is None:
        return group.member(identity.member_id)
    member = group.static_member(identity.group_instance_id)
    if member is None or identity.member_id:
        return check_instance(member, identity.member_id, identity.group_instance_id)
    return member


def _rejoin_timer(member: Member, group_id: str, now: int) -> Timer:
    return _fencing_timer(join_key(group_id, member.member_id), member, group_id, now)._replace(if_absent=True)


def _fencing_timer(key: object, member: Member, group_id: str, now: int) -> Timer:
    return Timer(key, now + member.rebalance_timeout_ms, MemberSilent(group_id, member.member_id))
