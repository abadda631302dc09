"""The driver of streams groups (KIP-1071): one task sends StreamsGroupHeartbeat whenever the machine needs it.

Owns the request, and what the program reads of the responses: tasks, statuses and the endpoints of other members.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.consuming.topic_watch import TopicWatch
from pybroker.client.drivers.driver import Identity, MembershipDriver
from pybroker.client.errors import BrokerError, ClientError
from pybroker.client.membership import streams_events as events
from pybroker.client.membership.events import Left, Polled
from pybroker.client.membership.modern import JOIN_EPOCH, ModernState
from pybroker.client.membership.rebalance_step import RebalanceStep, Remedy
from pybroker.client.membership.streams import StreamsMember
from pybroker.client.membership.streams_events import GroupTasks
from pybroker.client.network.cluster import Cluster
from pybroker.client.network.connection import Connection
from pybroker.client.settings import ConsumerSettings
from pybroker.protocol.messages.streams_group_heartbeat import (
    EndpointToPartitions,
    Status,
    StreamsGroupHeartbeatResponse,
)

_log = logging.getLogger("pybroker.client")


class StreamsDriver(MembershipDriver):
    """Keeps a member in a streams group."""

    member: StreamsMember

    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        topics: TopicWatch,
        notify: Callable[[], None],
        member: StreamsMember,
    ) -> None:
        super().__init__(cluster, settings, topics, notify)
        self.member = member
        self.statuses: Sequence[Status] = ()
        """The statuses of the last response: why the group has no assignment."""
        self.endpoints: Sequence[EndpointToPartitions] = ()
        """The partitions of each member with an `application.server`."""
        self._step_tasks = GroupTasks()
        self._loop: asyncio.AbstractEventLoop | None = None

    def subscribe(self, _keeps: frozenset[TopicPartition], _reason: str, /) -> None:
        """Join. The topics are those of the topology."""
        self._loop = asyncio.get_running_loop()
        if self.member.membership.state in (ModernState.UNSUBSCRIBED, ModernState.STALE, ModernState.FATAL):
            self.drive(events.StreamsJoined())
        self.start()
        self.wake()

    def poll(self) -> None:
        """Record that the program polls."""
        was = self.member.membership.state
        self.drive(Polled())
        if self.member.membership.state is not was:
            self.wake()

    def rebalance_step(self) -> RebalanceStep | None:
        """Return the machine's step."""
        self._step_tasks = self.member.membership.target
        return self.member.rebalance_step()

    def step_done(self, step: RebalanceStep) -> None:
        """Pass the step to the machine."""
        self.drive(events.TasksReconciled(step, self._step_tasks))
        self.wake()

    def target(self) -> GroupTasks:
        """Return the tasks of the step that the program does now."""
        return self._step_tasks

    def owned_tasks(self) -> GroupTasks:
        """Return the tasks of the last step that the program has done."""
        return self.member.membership.owned

    def owned(self) -> frozenset[TopicPartition]:
        """Return the partitions of the program's active tasks."""
        return self.member.partitions(self.member.membership.owned.active)

    def identity(self) -> Identity:
        """Return member id, epoch and instance id."""
        it = self.member.membership
        return it.member_id, it.epoch if it.epoch != JOIN_EPOCH else -1, None

    def topics_changed(self) -> None:
        """Do nothing: the broker watches the topics."""

    def request_shutdown_soon(self) -> None:
        """Request the shutdown of all members with the next heartbeats. Any thread may call this."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._request_shutdown)

    def _request_shutdown(self) -> None:
        self.drive(events.ShutdownRequested())
        self.wake()

    async def leave(self, _reason: str, /) -> None:
        """Send the heartbeat with which a member leaves the group."""
        it = self.member.membership
        in_group = it.epoch != JOIN_EPOCH or it.state is ModernState.JOINING
        request = self.member.build_leave()
        if self.member.has_stalled(asyncio.get_running_loop().time()):
            self.drive(events.StreamsStalled())
        else:
            self.drive(Left())
        self.wake()
        if in_group:
            with contextlib.suppress(ClientError):
                connection = await self.cluster.coordinator(self.group)
                await connection.query(request, StreamsGroupHeartbeatResponse)

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
                    self.drive(events.StreamsHeartbeatLost())
            else:
                await self.sleep_until(min(member.heartbeat_at(), member.stalls_at()))

    async def _heartbeat(self, connection: Connection) -> tuple[Remedy, int]:
        request = self.member.build_heartbeat()
        self.drive(events.StreamsHeartbeatSent(request))
        began = self.sensors.now()
        response = await connection.query(request, StreamsGroupHeartbeatResponse)
        self.sensors.heartbeat.record(self.sensors.now() - began)
        remedy = self.drive(events.StreamsHeartbeatCompleted(request.member_epoch, response))
        if remedy is Remedy.FAIL:
            raise BrokerError.of(
                connection.server, f"group {self.group!r}", response.error_code, response.error_message
            )
        if not response.error_code:
            self._take(response)
        return remedy, response.error_code

    def _take(self, response: StreamsGroupHeartbeatResponse) -> None:
        """Keep what the program reads of a response, and log new statuses."""
        statuses = response.status or ()
        if statuses and statuses != self.statuses:
            text = ", ".join(f"({status.status_code}) {status.status_detail}" for status in statuses)
            _log.warning("Group %s: membership is in the following statuses: %s", self.group, text)
        self.statuses = statuses
        if response.partitions_by_user_endpoint is not None:
            self.endpoints = response.partitions_by_user_endpoint
