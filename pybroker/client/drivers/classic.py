"""The driver of the classic protocol: JoinGroup, SyncGroup, Heartbeat and LeaveGroup, and the leader's assignment.

Owns the requests, and the subscriptions and assignments that they contain. It has two tasks: one runs rebalances,
the other sends heartbeats.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.assignors import Assignor, GroupMember, RackAware
from pybroker.client.consuming.group_offsets import by_topic
from pybroker.client.consuming.topic_watch import TopicWatch
from pybroker.client.drivers.driver import Identity, MembershipDriver
from pybroker.client.errors import ClientError, SettingError
from pybroker.client.membership import classic_events as events
from pybroker.client.membership.classic import ClassicMember, ClassicRules, ClassicState
from pybroker.client.membership.events import Left, Polled
from pybroker.client.membership.rebalance_step import RebalanceStep, Remedy
from pybroker.client.network.cluster import Cluster
from pybroker.client.network.connection import Connection
from pybroker.client.settings import ConsumerSettings
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages import consumer_protocol_assignment as assignments
from pybroker.protocol.messages import consumer_protocol_subscription as subscriptions
from pybroker.protocol.messages import heartbeat, join_group, leave_group, sync_group
from pybroker.protocol.messages.consumer_protocol import decode_framed, encode_framed

_PROTOCOL_TYPE = "consumer"
_GRACE_MS = 5_000
"""The broker delays a JoinGroup until the rebalance completes, and responds a little later."""
_WRITTEN_VERSION = 3
"""The version of the consumer protocol in which subscriptions are encoded."""


class ClassicDriver(MembershipDriver):
    """A member of a classic group."""

    member: ClassicMember

    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        topics: TopicWatch,
        notify: Callable[[], None],
        assignors: Sequence[Assignor],
    ) -> None:
        super().__init__(cluster, settings, topics, notify)
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self.member = ClassicMember(
            ClassicRules(
                session_timeout_s=settings.session_timeout_ms / 1000,
                heartbeat_interval_s=settings.heartbeat_interval_ms / 1000,
                max_poll_interval_s=settings.max_poll_interval_ms / 1000,
                # With one assignor that is not cooperative, every rebalance revokes all partitions (KIP-429).
                cooperative=all(assignor.cooperative for assignor in assignors),
            )
        )
        self._moved = asyncio.Event()
        self._joined = join_group.JoinGroupResponse()
        self._counts: dict[str, int] | None = None
        """On the leader: the partition counts of the topics in its last assignment."""

    def subscribe(self, keeps: frozenset[TopicPartition], reason: str, /) -> None:
        """Join, or join again."""
        self.drive(events.Subscribed(keeps, reason))
        self.start()
        self.wake()

    def poll(self) -> None:
        """Record that the program polls. A member that had left after max.poll.interval.ms joins again."""
        if self.member.state is ClassicState.OUTSIDE:
            self.subscribe(self.member.owned, "need to rejoin after the poll timeout had expired")
        self.drive(Polled())

    def rebalance_step(self) -> RebalanceStep | None:
        """Return the machine's step."""
        return self.member.rebalance_step()

    def step_done(self, step: RebalanceStep) -> None:
        """Pass the step to the machine."""
        self.drive(events.StepDone(step))
        self.wake()

    def owned(self) -> frozenset[TopicPartition]:
        """Return the machine's partitions."""
        return self.member.owned

    def identity(self) -> Identity:
        """Return member id, generation and instance id."""
        return self.member.member_id, self.member.generation, self.settings.group_instance_id

    def topics_changed(self) -> None:
        """On a leader whose assignment used other partition counts: start a rebalance."""
        known, counts = self._counts, self.topics.counts
        if known is not None and any(known.get(t) != counts[t] for t in self.topics.subscribed() & counts.keys()):
            self._counts = None
            self.drive(events.RejoinWanted("cached metadata has changed"))
            self.wake()

    async def leave(self, reason: str, /) -> None:
        """Send LeaveGroup to the coordinator, unless the member is static and kept until its session expires."""
        member_id, _, instance_id = self.identity()
        waits = self.member.state in (ClassicState.JOINING, ClassicState.SYNCING)
        self.drive(Left())
        self._counts = None
        self.wake()
        if not member_id or instance_id is not None:
            return
        with contextlib.suppress(ClientError):
            connection = await self.cluster.coordinator(self.group)
            if waits:  # a broker reads no request behind one without a response
                await connection.close()
                connection = await self.cluster.coordinator(self.group)
            request = leave_group.LeaveGroupRequest(group_id=self.group)
            if connection.version_of(request) >= leave_group.FIRST_VERSION_WITH_MANY_MEMBERS:
                request.members = [leave_group.MemberIdentity(member_id=member_id, reason=reason)]
            else:
                request.member_id = member_id
            await connection.query(request, leave_group.LeaveGroupResponse)

    # ----------------------------------------------------------------------------------------------------- the tasks

    def loops(self) -> list[Callable[[], Awaitable[None]]]:
        """Return the task of rebalances and the task of heartbeats."""
        return [self._rebalance, self._beat]

    async def _rebalance(self) -> None:
        while True:
            if self.member.state is ClassicState.JOINING:
                await self.attempt(self._join)
            elif self.member.state is ClassicState.SYNCING:
                await self.attempt(self._sync)
            else:
                self._moved.clear()
                await self._moved.wait()

    def wake(self) -> None:
        """As every driver; also wake the rebalance task."""
        super().wake()
        self._moved.set()

    async def _beat(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            member, now = self.member, clock()
            if member.has_stalled(now):
                await self.leave_as_silent()
            elif member.heartbeat_at() <= now:
                if member.is_unanswered(now):
                    self.cluster.forget_coordinator(self.group)
                await self.attempt(self._heartbeat)
            else:
                await self.sleep_until(min(member.heartbeat_at(), member.stalls_at()))

    async def _heartbeat(self, connection: Connection) -> tuple[Remedy, int]:
        member_id, generation, instance_id = self.identity()
        request = heartbeat.HeartbeatRequest(
            group_id=self.group, generation_id=generation, member_id=member_id, group_instance_id=instance_id
        )
        self.drive(events.HeartbeatSent())
        began = self.sensors.now()
        response = await connection.query(request, heartbeat.HeartbeatResponse)
        self.sensors.heartbeat.record(self.sensors.now() - began)
        return self.drive(events.HeartbeatCompleted(response.error_code, generation)), response.error_code

    async def _join(self, connection: Connection) -> tuple[Remedy, int]:
        request = join_group.JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self.settings.session_timeout_ms,
            rebalance_timeout_ms=self.settings.max_poll_interval_ms,
            member_id=self.member.member_id,
            group_instance_id=self.settings.group_instance_id,
            protocol_type=_PROTOCOL_TYPE,
            protocols=[
                join_group.JoinGroupRequestProtocol(name=assignor.name, metadata=self._subscription(assignor))
                for assignor in self._assignors.values()
            ],
            reason=self.member.reason,
        )
        timeout_ms = max(self.settings.max_poll_interval_ms + _GRACE_MS, self.settings.request_timeout_ms)
        self.sensors.begin_rebalance()
        began = self.sensors.now()
        response = await connection.query(request, join_group.JoinGroupResponse, timeout_ms=timeout_ms)
        self.sensors.join.record(self.sensors.now() - began)
        self._joined = response
        code = response.error_code
        joined = events.JoinCompleted(code, response.member_id, response.generation_id, response.protocol_name)
        return self.drive(joined), code

    def _subscription(self, assignor: Assignor) -> bytes:
        owned = by_topic(sorted(self.member.owned, key=lambda p: (p.topic, p.partition)))
        payload = subscriptions.ConsumerProtocolSubscription(
            topics=sorted(self.topics.subscribed()),
            user_data=assignor.user_data(),
            owned_partitions=[subscriptions.TopicPartition(topic=t, partitions=i) for t, i in owned.items()],
            generation_id=self.member.generation,
            rack_id=self.settings.client_rack or None,
        )
        return encode_framed(payload, _WRITTEN_VERSION)

    async def _sync(self, connection: Connection) -> tuple[Remedy, int]:
        joined, generation = self._joined, self.member.generation
        leads = joined.leader == joined.member_id
        request = sync_group.SyncGroupRequest(
            group_id=self.group,
            generation_id=generation,
            member_id=self.member.member_id,
            group_instance_id=self.settings.group_instance_id,
            protocol_type=_PROTOCOL_TYPE,
            protocol_name=joined.protocol_name,
            assignments=await self._assign() if leads and not joined.skip_assignment else [],
        )
        self._counts = self._counts if leads else None
        timeout_ms = max(self.settings.max_poll_interval_ms + _GRACE_MS, self.settings.request_timeout_ms)
        began = self.sensors.now()
        response = await connection.query(request, sync_group.SyncGroupResponse, timeout_ms=timeout_ms)
        self.sensors.sync.record(self.sensors.now() - began)
        assigned = _read_assignment(response.assignment) if response.error_code == ErrorCode.NONE else ()
        if response.error_code == ErrorCode.NONE and self.member.generation == generation:
            self._assignor(joined.protocol_name).on_assignment(assigned, generation)
        synced = events.SyncCompleted(response.error_code, generation, frozenset(assigned))
        return self.drive(synced), response.error_code

    def _assignor(self, name: str | None) -> Assignor:
        if name not in self._assignors:
            raise SettingError(f"group {self.group!r} chose the assignor {name!r}, which this consumer does not have")
        return self._assignors[name]

    async def _assign(self) -> list[sync_group.SyncGroupRequestAssignment]:
        """On the leader: return the assignment of all members."""
        members = {member.member_id: _read_member(member) for member in self._joined.members}
        wanted = {topic for member in members.values() for topic in member.topics}
        self._counts, racks = await self.topics.survey(wanted)
        assignor = self._assignor(self._joined.protocol_name)
        partitions = {topic: n for topic, n in self._counts.items() if n > 0}
        if isinstance(assignor, RackAware):
            assigned = assignor.assign_by_racks(partitions, members, racks)
        else:
            assigned = assignor.assign(partitions, members)
        if strangers := assigned.keys() - members.keys():
            names = ", ".join(sorted(strangers))
            raise SettingError(
                f"group {self.group!r}: the assignor {assignor.name!r} assigned partitions to {names}, not a member"
            )
        return [
            sync_group.SyncGroupRequestAssignment(member_id=member_id, assignment=_assignment(partitions))
            for member_id, partitions in assigned.items()
        ]


def _read_member(member: join_group.JoinGroupResponseMember) -> GroupMember:
    reported = decode_framed(subscriptions.ConsumerProtocolSubscription, member.metadata)
    owned = tuple(TopicPartition(t.topic, index) for t in reported.owned_partitions for index in t.partitions)
    return GroupMember(
        topics=tuple(reported.topics),
        user_data=reported.user_data,
        owned=owned,
        generation=reported.generation_id if reported.generation_id >= 0 else None,
        instance_id=member.group_instance_id,
        rack=reported.rack_id,
    )


def _assignment(partitions: Sequence[TopicPartition]) -> bytes:
    topics = [assignments.TopicPartition(topic=t, partitions=i) for t, i in by_topic(partitions).items()]
    return encode_framed(assignments.ConsumerProtocolAssignment(assigned_partitions=topics), _WRITTEN_VERSION)


def _read_assignment(raw: bytes) -> tuple[TopicPartition, ...]:
    """Decode a leader's assignment; empty bytes assign no partition."""
    if not raw:
        return ()
    reported = decode_framed(assignments.ConsumerProtocolAssignment, raw)
    return tuple(TopicPartition(t.topic, index) for t in reported.assigned_partitions for index in t.partitions)
