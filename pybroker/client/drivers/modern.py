"""The driver of the protocol of KIP-848, which sends ConsumerGroupHeartbeat.

Owns the names of topics, which assignments contain by id. The task of heartbeats is that of `heartbeat`.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.consuming.topic_watch import TopicWatch
from pybroker.client.drivers.heartbeat import HeartbeatDriver
from pybroker.client.errors import ConnectionLostError
from pybroker.client.membership import modern_events as events
from pybroker.client.membership.heartbeat_member import JOIN_EPOCH, MemberRules
from pybroker.client.membership.modern import ModernMember
from pybroker.client.membership.modern_events import GroupSubscription
from pybroker.client.membership.rebalance_step import RebalanceStep
from pybroker.client.network.cluster import Cluster
from pybroker.client.network.connection import Connection
from pybroker.client.settings import ConsumerSettings
from pybroker.protocol.messages.consumer_group_heartbeat import (
    FIRST_VERSION_WITH_MEMBERS_OWN_ID,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from pybroker.protocol.schema import ZERO_UUID


class ModernDriver(HeartbeatDriver[ModernMember, ConsumerGroupHeartbeatResponse]):
    """Keeps a member in a group of KIP-848."""

    def __init__(
        self, cluster: Cluster, settings: ConsumerSettings, topics: TopicWatch, notify: Callable[[], None]
    ) -> None:
        assert settings.group_id is not None
        rules = MemberRules(
            group_id=settings.group_id,
            instance_id=settings.group_instance_id,
            max_poll_interval_s=settings.max_poll_interval_ms / 1000,
        )
        member = ModernMember(rules, member_id=str(uuid.uuid4()))
        super().__init__(cluster, settings, topics, notify, member, ConsumerGroupHeartbeatResponse)
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

    def build_heartbeat(self, connection: Connection, /) -> ConsumerGroupHeartbeatRequest:
        """Build a heartbeat without a member id when joining a coordinator that generates the id."""
        request = self.member.build_heartbeat()
        makes_own_id = connection.version_of(request) >= FIRST_VERSION_WITH_MEMBERS_OWN_ID
        if not makes_own_id and request.member_epoch == JOIN_EPOCH:
            request.member_id = ""
        return request

    async def read(self, response: ConsumerGroupHeartbeatResponse, /) -> None:
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
