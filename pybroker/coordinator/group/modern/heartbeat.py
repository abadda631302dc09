"""ConsumerGroupHeartbeat: the whole protocol of a member (KIP-848).

Owns the steps of a heartbeat, from its validation to its response: join, stay, change a subscription, reconcile, leave.
Uses the functions of the other modules for decisions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.group.errors import FencedMemberEpochError, InvalidRequestError, UnsupportedAssignorError
from pybroker.coordinator.group.modern.finding import find_or_create
from pybroker.coordinator.group.modern.leave import leave
from pybroker.coordinator.group.modern.reconciliation import Goal, UnknownStateError, reconcile
from pybroker.coordinator.group.modern.records import build_current, build_subscription
from pybroker.coordinator.group.modern.subscription import (
    check_new_pattern,
    subscribed_ids,
    update_epoch,
    update_patterns,
)
from pybroker.coordinator.group.modern.target import maybe_update_target
from pybroker.coordinator.group.reconciled.member import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from pybroker.coordinator.group.reconciled.membership import MUST_REJOIN, check_epoch, check_group_size, find_or_replace
from pybroker.coordinator.group.reconciled.timers import revocation_timer, session_timer
from pybroker.protocol.messages.consumer_group_heartbeat import (
    FIRST_VERSION_WITH_MEMBERS_OWN_ID,
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pybroker.coordinator.group.events import Client, ConsumerHeartbeat
    from pybroker.coordinator.group.group_change import Record
    from pybroker.coordinator.group.modern.decision import Decision
    from pybroker.coordinator.group.modern.member import Held, Member, Owned
    from pybroker.coordinator.group.view import GroupView
    from pybroker.machine.machine import Outcome


def heartbeat(view: GroupView, event: ConsumerHeartbeat, now: int) -> Outcome[Record, ConsumerGroupHeartbeatResponse]:
    """Decide about a heartbeat."""
    request = event.request
    check_request(request, event.version, view.settings.consumer.assignors)
    if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
        return leave(view, request, now)
    joins = request.member_epoch == JOIN_EPOCH
    decision = find_or_create(view, request.group_id, creates=joins, now=now)
    check_group_size(decision.group, request.member_id, view.settings.consumer.max_size)
    member_id = request.member_id or event.fresh_id
    owned = None if request.topic_partitions is None else _owned(request.topic_partitions)
    before = find_or_replace(decision, member_id, request.instance_id, joins=joins)
    check_epoch(decision.group, before, request.member_epoch, owned)
    wants = _updated(before, request, event.client)
    after = complete(decision, view, before, wants, owned, now)
    timeout_ms = view.consumer_settings(decision.group.id).session_timeout_ms
    decision.timers.append(session_timer(decision.group.id, member_id, now + timeout_ms))
    return decision.outcome(_response(view, request, before, after))


def complete(
    decision: Decision,
    view: GroupView,
    before: Member,
    wants: Member,
    owned: Owned | None,
    now: int,
    *,
    assigns: bool = True,
) -> Member:
    """Update the subscription, increment the epoch and compute a target if due, and reconcile the member.

    Returns the member afterwards. Members of both protocols use this function. With `assigns` false the target is
    unchanged: the group is about to become a classic one, whose leader assigns.
    """
    check_new_pattern(decision.group, wants.regex)
    if wants is not before and wants != before:
        decision.write([build_subscription(decision.group.id, wants)])
    changed = wants.topics != before.topics or wants.regex != before.regex
    found_others = update_patterns(decision, view, now)
    update_epoch(decision, view, changed=changed or found_others)
    if assigns:
        maybe_update_target(decision, view, now)
    return _reconcile(decision, view, wants, owned, changed, now)


def check_request(request: ConsumerGroupHeartbeatRequest, version: int, assignors: tuple[str, ...]) -> None:
    """Raise an error if a request is inconsistent, in Kafka's words."""
    if (
        version >= FIRST_VERSION_WITH_MEMBERS_OWN_ID
        or request.member_epoch > JOIN_EPOCH
        or request.member_epoch == LEAVE_EPOCH
    ):
        _check_not_empty(request.member_id, "MemberId can't be empty.")
    _check_not_empty(request.group_id, "GroupId can't be empty.")
    _check_not_empty(request.instance_id, "InstanceId can't be empty.")
    _check_not_empty(request.rack_id, "RackId can't be empty.")
    if request.member_epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms == -1:
            raise InvalidRequestError("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise InvalidRequestError("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise InvalidRequestError(
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
            )
    elif request.member_epoch == STATIC_LEAVE_EPOCH:
        if request.instance_id is None:
            raise InvalidRequestError("InstanceId can't be null.")
    elif request.member_epoch < STATIC_LEAVE_EPOCH:
        raise InvalidRequestError("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise UnsupportedAssignorError(
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}."
        )


def _check_not_empty(text: str | None, fault: str) -> None:
    if text is not None and not text.strip():
        raise InvalidRequestError(fault)


def _updated(before: Member, request: ConsumerGroupHeartbeatRequest, client: Client) -> Member:
    """Return the member with the fields of the request; missing fields are unchanged.

    Returns the same object if nothing changes, which is the case for most heartbeats.
    """
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    timeout_ms = request.rebalance_timeout_ms
    silent = names is None and regex is None and request.server_assignor is None and timeout_ms == -1
    if silent and _is_from(before, request, client):
        return before
    return msgspec.structs.replace(
        before,
        instance_id=before.instance_id if request.instance_id is None else request.instance_id,
        rack_id=before.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=before.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        assignor=before.assignor if request.server_assignor is None else request.server_assignor,
        topics=before.topics if names is None else frozenset(names),
        regex=before.regex if regex is None else regex,
        client_id=client.client_id,
        client_host=client.client_host,
        classic=None,
    )


def _is_from(member: Member, request: ConsumerGroupHeartbeatRequest, client: Client) -> bool:
    return (
        member.client_id == client.client_id
        and member.client_host == client.client_host
        and request.instance_id in (None, member.instance_id)
        and request.rack_id in (None, member.rack_id)
        and member.classic is None
    )


def _reconcile(
    decision: Decision, view: GroupView, member: Member, owned: Owned | None, changed: bool, now: int
) -> Member:
    group = decision.group
    if not changed and member.is_reconciled_to(group.assignment_epoch):
        return member
    goal = Goal(
        group.assignment_epoch,
        group.target_of(member.member_id, member.instance_id),
        subscribed_ids(member, group.regexes, view.topics),
        changed,
    )
    try:
        after = reconcile(member, goal, group.partition_epoch, owned)
    except UnknownStateError:
        raise FencedMemberEpochError(f"The consumer group member is in a unknown state. {MUST_REJOIN}") from None
    if after == member:
        return member
    decision.write([build_current(group.id, after)])
    if not after.is_classic:
        decision.timers.append(revocation_timer(group.id, after, now))
    return after


def _response(
    view: GroupView, request: ConsumerGroupHeartbeatRequest, before: Member, after: Member
) -> ConsumerGroupHeartbeatResponse:
    # A full request needs a full response: the member has restarted, or a response was lost.
    is_full = (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )
    has_assignment = request.member_epoch == JOIN_EPOCH or is_full or before.assigned != after.assigned
    return ConsumerGroupHeartbeatResponse(
        member_id=after.member_id,
        member_epoch=after.epoch,
        heartbeat_interval_ms=view.consumer_settings(request.group_id).heartbeat_interval_ms,
        assignment=_assignment(after.assigned) if has_assignment else None,
    )


def _assignment(held: Held) -> Assignment:
    return Assignment(
        topic_partitions=[TopicPartitions(topic_id=topic, partitions=sorted(held[topic])) for topic in sorted(held)]
    )


def _owned(reported: Sequence[TopicPartitions]) -> Owned:
    owned: dict[bytes, set[int]] = {}
    for topic in reported:
        owned.setdefault(topic.topic_id, set()).update(topic.partitions)
    return {topic: frozenset(partitions) for topic, partitions in owned.items() if partitions}
