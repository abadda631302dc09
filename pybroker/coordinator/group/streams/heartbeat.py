"""StreamsGroupHeartbeat: the whole protocol of a member (KIP-1071).

Owns the steps of a heartbeat, from its validation to its response: join, stay, reconcile, leave. Uses the functions of
the other modules for decisions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.group.errors import FencedMemberEpochError, InvalidRequestError, UnknownMemberIdError
from pybroker.coordinator.group.reconciled.group import NO_EPOCH
from pybroker.coordinator.group.reconciled.member import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from pybroker.coordinator.group.reconciled.membership import check_epoch, check_group_size, find_or_replace
from pybroker.coordinator.group.reconciled.timers import revocation_timer, session_timer
from pybroker.coordinator.group.streams.configuration import configure
from pybroker.coordinator.group.streams.finding import find_or_create
from pybroker.coordinator.group.streams.leave import leave, request_shutdown
from pybroker.coordinator.group.streams.member import has_new_placement
from pybroker.coordinator.group.streams.offsets import NO_OFFSETS, reported_offsets
from pybroker.coordinator.group.streams.reconciliation import UnknownStateError, reconcile
from pybroker.coordinator.group.streams.records import (
    build_current,
    build_epoch,
    build_member,
    build_topology_record,
)
from pybroker.coordinator.group.streams.reply import HeartbeatStep, StreamsReply, build_reply
from pybroker.coordinator.group.streams.request import check_owned, check_request, owned_tasks
from pybroker.coordinator.group.streams.settings import assignment_configs
from pybroker.coordinator.group.streams.target import maybe_update_target
from pybroker.coordinator.group.streams.tasks import NO_TASKS
from pybroker.coordinator.group.streams.timers import StreamsDelayOver, delay_key
from pybroker.coordinator.group.streams.topology import build_topology
from pybroker.machine.machine import Timer

if TYPE_CHECKING:
    from pybroker.coordinator.group.events import Client, StreamsHeartbeat
    from pybroker.coordinator.group.group_change import Record
    from pybroker.coordinator.group.streams.configuration import ConfiguredTopology
    from pybroker.coordinator.group.streams.decision import StreamsDecision
    from pybroker.coordinator.group.streams.member import StreamsMember
    from pybroker.coordinator.group.streams.tasks import Tasks
    from pybroker.coordinator.group.streams.topology import Topology
    from pybroker.coordinator.group.view import GroupView
    from pybroker.machine.machine import Outcome
    from pybroker.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest


def heartbeat(view: GroupView, event: StreamsHeartbeat, now: int) -> Outcome[Record, StreamsReply]:
    """Decide about a heartbeat."""
    request = event.request
    check_request(request)
    if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
        return leave(view, request)
    joins = request.member_epoch == JOIN_EPOCH
    decision = find_or_create(view, request.group_id, joins=joins)
    settings = view.streams_settings(request.group_id)
    if joins and decision.group.static_member(request.instance_id) is None:
        check_group_size(decision.group, request.member_id, settings.max_size)
    was_empty = decision.group.is_empty
    owned = owned_tasks(request)
    before = find_or_replace(decision, request.member_id, request.instance_id, joins=joins)
    check_epoch(decision.group, before, request.member_epoch, owned)
    wants = _updated(before, request, event.client, joins=joins)
    configured = _update_epoch(decision, view, _topology(decision, request), before, wants)
    if configured.is_ready:
        check_owned(request, configured.subtopologies or {})
    _report_offsets(decision, request)
    if was_empty:
        _maybe_delay(decision, view, now)
    delayed = maybe_update_target(decision, configured, view, now)
    after = _reconcile(decision, wants, owned, now)
    decision.timers.append(session_timer(request.group_id, request.member_id, now + settings.session_timeout_ms))
    if request.shutdown_application:
        request_shutdown(decision, request.member_id)
    _count_endpoints(decision, before, after)
    return decision.outcome(build_reply(view, event, decision.group, HeartbeatStep(before, after, configured, delayed)))


def _updated(
    before: StreamsMember, request: StreamsGroupHeartbeatRequest, client: Client, *, joins: bool
) -> StreamsMember:
    """Return the member with the fields of the request; missing fields are unchanged."""
    endpoint = request.user_endpoint
    timeout_ms = request.rebalance_timeout_ms
    given = None if endpoint is None else (endpoint.host, endpoint.port)
    tags = request.client_tags
    return msgspec.structs.replace(
        before,
        instance_id=before.instance_id if request.instance_id is None else request.instance_id,
        rack_id=before.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=before.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topology_epoch=before.topology_epoch if request.topology is None else request.topology.epoch,
        client_id=client.client_id,
        client_host=client.client_host,
        process_id=before.process_id if request.process_id is None else request.process_id,
        endpoint=given if joins or given is not None else before.endpoint,
        client_tags=before.client_tags if tags is None else {tag.key: tag.value for tag in tags},
    )


def _topology(decision: StreamsDecision, request: StreamsGroupHeartbeatRequest) -> Topology:
    """Return the group's topology; that of the first member that joins becomes the group's."""
    known = decision.group.topology
    if request.topology is None:
        if known is None:
            # The log has lost the topology. The member sends it again when it rejoins.
            raise UnknownMemberIdError(f"Group {decision.group.id} has no topology. The member must rejoin.")
        return known
    if known is not None and known.epoch > request.topology.epoch:
        return known
    sent = build_topology(request.topology)
    if known is None:
        return sent
    if known != sent:
        raise InvalidRequestError("Topology updates are not supported yet.")
    return known


def _update_epoch(
    decision: StreamsDecision,
    view: GroupView,
    topology: Topology,
    before: StreamsMember,
    after: StreamsMember,
) -> ConfiguredTopology:
    """Write the changed member and topology, and increment the group's epoch if a new assignment is needed."""
    group_id = decision.group.id
    configured = configure(topology, view.topics)
    changed = after != before
    if changed:
        decision.write([build_member(group_id, after)])
    if decision.group.topology is None:
        decision.write([build_topology_record(group_id, topology)])
    group = decision.group
    validated = topology.epoch if configured.is_ready else NO_EPOCH
    configs = assignment_configs(view.streams_settings(group_id))
    if (
        (changed and (after.instance_id is None or has_new_placement(before, after)))
        or configured.metadata_hash != group.metadata_hash
        or validated != group.validated_topology_epoch
        or configs != group.last_configs
    ):
        record = build_epoch(
            group_id,
            group.epoch + 1,
            configured.metadata_hash,
            validated_topology_epoch=validated,
            configs=configs,
            description_epochs=group.description_epochs,
        )
        decision.write([record])
    return configured


def _report_offsets(decision: StreamsDecision, request: StreamsGroupHeartbeatRequest) -> None:
    before = decision.group.task_offsets.get(request.member_id, NO_OFFSETS)
    after = reported_offsets(before, request)
    if after != before:
        decision.set(task_offsets={**decision.group.task_offsets, request.member_id: after})


def _maybe_delay(decision: StreamsDecision, view: GroupView, now: int) -> None:
    """Delay the first assignment of a group for its first member."""
    group_id = decision.group.id
    delay_ms = view.streams_settings(group_id).initial_rebalance_delay_ms
    if delay_ms > 0:
        decision.timers.append(Timer(delay_key(group_id), now + delay_ms, StreamsDelayOver(group_id), if_absent=True))
        decision.set(is_delayed=True)


def _reconcile(decision: StreamsDecision, member: StreamsMember, owned: Tasks | None, now: int) -> StreamsMember:
    group = decision.group
    if member.is_reconciled_to(group.assignment_epoch):
        return member
    target = NO_TASKS if group.is_delayed else group.target_of(member.member_id)
    try:
        after = reconcile(member, group.assignment_epoch, target, group.owners, owned)
    except UnknownStateError:
        raise FencedMemberEpochError(
            "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin."
        ) from None
    if after == member:
        return member
    decision.write([build_current(group.id, after)])
    decision.timers.append(revocation_timer(group.id, after, now))
    return after


def _count_endpoints(decision: StreamsDecision, before: StreamsMember, after: StreamsMember) -> None:
    """Increment the epoch of the endpoint information if the partitions of an endpoint have changed."""
    moved = before.assigned != after.assigned and after.endpoint is not None
    if moved or before.endpoint != after.endpoint:
        decision.set(endpoint_epoch=decision.group.endpoint_epoch + 1)
