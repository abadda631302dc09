"""The common part of the drivers of KIP-848 and KIP-1071: one task sends a heartbeat whenever the machine needs it.

Owns the requests. Must not know what a heartbeat or an assignment contains.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from pybroker.client.consuming.topic_watch import TopicWatch
from pybroker.client.drivers.driver import Identity, MembershipDriver
from pybroker.client.errors import BrokerError, ClientError
from pybroker.client.membership.events import Left, Polled
from pybroker.client.membership.heartbeat_events import (
    HeartbeatCompleted,
    HeartbeatLost,
    HeartbeatRequest,
    HeartbeatSent,
    Stalled,
)
from pybroker.client.membership.heartbeat_member import JOIN_EPOCH, HeartbeatMember, MembershipState
from pybroker.client.membership.rebalance_step import Remedy
from pybroker.client.network.cluster import Cluster
from pybroker.client.network.connection import Connection
from pybroker.client.settings import ConsumerSettings
from pybroker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from pybroker.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse

Member = TypeVar("Member", bound=HeartbeatMember[Any, Any])
Response = TypeVar("Response", ConsumerGroupHeartbeatResponse, StreamsGroupHeartbeatResponse)


class HeartbeatDriver(MembershipDriver, Generic[Member, Response]):
    """Keeps a member in a group whose coordinator computes the assignment."""

    member: Member

    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        topics: TopicWatch,
        notify: Callable[[], None],
        member: Member,
        response: type[Response],
    ) -> None:
        super().__init__(cluster, settings, topics, notify)
        self.member = member
        self._response: type[Response] = response

    def poll(self) -> None:
        """Record that the program polls."""
        was = self.member.state
        self.drive(Polled())
        if self.member.state is not was:
            self.wake()

    def identity(self) -> Identity:
        """Return member id, epoch and instance id."""
        epoch = self.member.epoch if self.member.epoch != JOIN_EPOCH else -1
        return self.member.member_id, epoch, self.member.rules.instance_id

    def topics_changed(self) -> None:
        """Do nothing: the broker watches the topics."""

    async def leave(self, _reason: str, /) -> None:
        """Send the heartbeat with which a member leaves the group."""
        member = self.member
        in_group = member.epoch != JOIN_EPOCH or member.state is MembershipState.JOINING
        request = member.build_leave()
        if member.has_stalled(asyncio.get_running_loop().time()):
            self.drive(Stalled())
        else:
            self.drive(Left())
        self.wake()
        if in_group:
            with contextlib.suppress(ClientError):
                connection = await self.cluster.coordinator(self.group)
                await connection.query(request, self._response)

    def loops(self) -> list[Callable[[], Awaitable[None]]]:
        """Return the task of heartbeats."""
        return [self._beat]

    def build_heartbeat(self, _connection: Connection, /) -> HeartbeatRequest:
        """Build the heartbeat for the coordinator of this connection."""
        return self.member.build_heartbeat()

    @abstractmethod
    async def read(self, response: Response, /) -> None:
        """Read the parts of a response, with or without an error, that the program or the driver needs."""

    async def _beat(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            member, now = self.member, clock()
            if member.has_stalled(now):
                await self.leave_as_silent()
            elif member.heartbeat_at() <= now:
                if not await self.attempt(self._heartbeat):
                    self.drive(HeartbeatLost())
            else:
                await self.sleep_until(min(member.heartbeat_at(), member.stalls_at()))

    async def _heartbeat(self, connection: Connection) -> tuple[Remedy, int]:
        request = self.build_heartbeat(connection)
        self.drive(HeartbeatSent(request))
        began = self.sensors.now()
        response = await connection.query(request, self._response)
        self.sensors.heartbeat.record(self.sensors.now() - began)
        await self.read(response)
        remedy = self.drive(HeartbeatCompleted(request.member_epoch, response))
        if remedy is Remedy.FAIL:
            raise BrokerError.of(
                connection.server, f"group {self.group!r}", response.error_code, response.error_message
            )
        return remedy, response.error_code
