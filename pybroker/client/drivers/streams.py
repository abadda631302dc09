"""The driver of streams groups (KIP-1071), which sends StreamsGroupHeartbeat.

Owns the parts of responses that the program reads: tasks, statuses and the endpoints of other members. The task of
heartbeats is that of `heartbeat`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.consuming.topic_watch import TopicWatch
from pybroker.client.drivers.heartbeat import HeartbeatDriver
from pybroker.client.membership import streams_events as events
from pybroker.client.membership.heartbeat_member import OUT_OF_GROUP
from pybroker.client.membership.rebalance_step import RebalanceStep
from pybroker.client.membership.streams import StreamsMember
from pybroker.client.membership.streams_events import GroupTasks
from pybroker.client.network.cluster import Cluster
from pybroker.client.settings import ConsumerSettings
from pybroker.protocol.messages.streams_group_heartbeat import (
    EndpointToPartitions,
    Status,
    StreamsGroupHeartbeatResponse,
)

_log = logging.getLogger("pybroker.client")


class StreamsDriver(HeartbeatDriver[StreamsMember, StreamsGroupHeartbeatResponse]):
    """Keeps a member in a streams group."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        topics: TopicWatch,
        notify: Callable[[], None],
        member: StreamsMember,
    ) -> None:
        super().__init__(cluster, settings, topics, notify, member, StreamsGroupHeartbeatResponse)
        self.statuses: Sequence[Status] = ()
        """The statuses of the last response: why the group has no assignment."""
        self.endpoints: Sequence[EndpointToPartitions] = ()
        """The partitions of each member with an `application.server`."""
        self._step_tasks = GroupTasks()
        self._loop: asyncio.AbstractEventLoop | None = None

    def subscribe(self, _keeps: frozenset[TopicPartition], _reason: str, /) -> None:
        """Join. The topics are those of the topology."""
        self._loop = asyncio.get_running_loop()
        if self.member.state in OUT_OF_GROUP:
            self.drive(events.StreamsJoined())
        self.start()
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

    def request_shutdown_soon(self) -> None:
        """Request the shutdown of all members with the next heartbeats. Any thread may call this."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._request_shutdown)

    def _request_shutdown(self) -> None:
        self.drive(events.ShutdownRequested())
        self.wake()

    async def read(self, response: StreamsGroupHeartbeatResponse, /) -> None:
        """Keep statuses and endpoints for the program, and log new statuses."""
        if response.error_code:
            return
        statuses = response.status or ()
        if statuses and statuses != self.statuses:
            text = ", ".join(f"({status.status_code}) {status.status_detail}" for status in statuses)
            _log.warning("Group %s: membership is in the following statuses: %s", self.group, text)
        self.statuses = statuses
        if response.partitions_by_user_endpoint is not None:
            self.endpoints = response.partitions_by_user_endpoint
