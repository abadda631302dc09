"""The driver of the protocol of KIP-848: one task sends ConsumerGroupHeartbeat whenever the machine needs it.

Owns the request, and the names of topics, which assignments contain by id.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.consuming.topic_watch import TopicWatch
from pybroker.client.drivers.driver import Identity, MembershipDriver
from pybroker.client.errors import BrokerError, ClientError, ConnectionLostError
from pybroker.client.membership import modern_events as events
from pybroker.client.membership.events import Left, Polled
from pybroker.client.membership.modern import JOIN_EPOCH, ModernMember, ModernRules, ModernState
from pybroker.client.membership.modern_events import GroupSubscription
from pybroker.client.membership.rebalance_step import RebalanceStep, Remedy
from pybroker.client.network.cluster import Cluster
from pybroker.client.network.connection import Connection
from pybroker.client.settings import ConsumerSettings
from pybroker.protocol.messages.consumer_group_heartbeat import (
    FIRST_VERSION_WITH_MEMBERS_OWN_ID,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from pybroker.protocol.schema import ZERO_UUID


class ModernDriver(MembershipDriver):
    """Keeps a member in a group of KIP-848."""

    member: ModernMember

    def __init__(
        self, cluster: Cluster, settings: ConsumerSettings, topics: TopicWatch, notify: Callable[[], None]
    ) -> None:
        super().__init__(cluster, settings, topics, notify)
        self.member = ModernMember(
            ModernRules(
                group_id=self.group,
                instance_id=settings.group_instance_id,
                max_poll_interval_s=settings.max_poll_interval_ms / 1000,
            ),
            member_id=str(uuid.uuid4()),
        )
        self._names: dict[bytes, str] = {}

    def subscribe(self, _keeps: frozenset[TopicPartition], _reason: str, /) -> None:
        """Join, or send the changed subscription. The broker's assignment defines which partitions to revoke."""
        subscription = GroupSubscription(
            topics=tuple(sorted(self.topics.subscribed())),
            regex=self.topics.regex,
            assignor=self.settings.group_remote_assignor,
            rack=self.settings.client_rack or None,
        )
        self.drive(events.Subscribed(subscription))
        self.start()
        self.wake()

    def poll(self) -> None:
        """Record that the program polls."""
        was = self.member.state
        self.drive(Polled())
        if self.member.state is not was:
            self.wake()

    def rebalance_step(self) -> RebalanceStep | None:
        """Return the machine's step."""
        return self.member.rebalance_step(self._names)

    def step_done(self, step: RebalanceStep) -> None:
        """Pass the step to the machine."""
        self.drive(events.StepDone(step, self._names))
        self.wake()

    def owned(self) -> frozenset[TopicPartition]:
        """Return the machine's partitions."""
        return self.member.owned

    def identity(self) -> Identity:
        """Return member id, epoch and instance id."""
        epoch = self.member.epoch if self.member.epoch != JOIN_EPOCH else -1
        return self.member.member_id, epoch, self.settings.group_instance_id

    def topics_changed(self) -> None:
        """Do nothing: the broker watches the topics."""

    async def leave(self, _reason: str, /) -> None:
        """Send the heartbeat with which a member leaves the group."""
        member = self.member
        in_group = member.epoch != JOIN_EPOCH or member.state is ModernState.JOINING
        request = member.build_leave()
        if member.has_stalled(asyncio.get_running_loop().time()):
            self.drive(events.Stalled())
        else:
            self.drive(Left())
        self.wake()
        if in_group:
            with contextlib.suppress(ClientError):
                connection = await self.cluster.coordinator(self.group)
                await connection.query(request, ConsumerGroupHeartbeatResponse)

    def loops(self) -> list[Callable[[], Awaitable[None]]]:
        """Return the task of heartbeats."""
        return [self._beat]

    async def _beat(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            member, now = self.member, clock()
            if member.has_stalled(now):
                await self.leave_as_silent()
            elif member.heartbeat_at() <= now:
                if not await self.attempt(self._heartbeat):
                    self.drive(events.HeartbeatLost())
            else:
                await self.sleep_until(min(member.heartbeat_at(), member.stalls_at()))

    async def _heartbeat(self, connection: Connection) -> tuple[Remedy, int]:
        request = self._fit(connection, self.member.build_heartbeat())
        self.drive(events.HeartbeatSent(request))
        began = self.sensors.now()
        response = await connection.query(request, ConsumerGroupHeartbeatResponse)
        self.sensors.heartbeat.record(self.sensors.now() - began)
        await self._learn_names(response)
        remedy = self.drive(events.HeartbeatCompleted(request.member_epoch, response))
        if remedy is Remedy.FAIL:
            raise BrokerError.of(
                connection.server, f"group {self.group!r}", response.error_code, response.error_message
            )
        return remedy, response.error_code

    def _fit(self, connection: Connection, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatRequest:
        makes_own_id = connection.version_of(request) >= FIRST_VERSION_WITH_MEMBERS_OWN_ID
        if not makes_own_id and request.member_epoch == JOIN_EPOCH:
            request.member_id = ""
        return request

    async def _learn_names(self, response: ConsumerGroupHeartbeatResponse) -> None:
        """Resolve the unknown topic ids of an assignment. A topic that is missing is retried at the next heartbeat."""
        if response.member_id:
            self.drive(events.IdGiven(response.member_id))
        assigned = {} if response.assignment is None else {t.topic_id for t in response.assignment.topic_partitions}
        self._names |= {i: n for i, n in self.topics.names.items() if i in assigned}
        unknown = sorted(set(assigned) - self._names.keys())
        if unknown:
            with contextlib.suppress(ConnectionLostError):
                _, metadata = await self.cluster.metadata((), ids=unknown)
                found = {t.topic_id: t.name for t in metadata.topics if t.name and t.topic_id != ZERO_UUID}
                self._names |= found
