"""The broker of a node: its listeners, replicas, coordinators, membership and metadata publishers.

Owns the order in which these stages are built. Each part registers its shutdown where it is built. Must not know the
quorum.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from pybroker.broker.failed_brokers import FailedBrokers
from pybroker.broker.moved_clients import MovedClients
from pybroker.broker.own_registration import OwnRegistration
from pybroker.controller.cluster.elections import leads_anything
from pybroker.net.api_versions import ApiVersionsPublisher
from pybroker.net.native import ConnectionClosed
from pybroker.node.coordinators import build_coordinators
from pybroker.node.membership import build_membership
from pybroker.node.replicas import build_replicas
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.controller.service import Controller
    from pybroker.metadata.image import MetadataImage
    from pybroker.metadata.publishers import Publisher
    from pybroker.node.controller_access import ControllerAccess, MetadataSource
    from pybroker.node.coordinators import Coordinators
    from pybroker.node.foundation import Foundation
    from pybroker.node.listening import Listening
    from pybroker.node.membership import Membership
    from pybroker.node.plugins import Plugins
    from pybroker.node.replicas import Replicas


class BrokerPart(msgspec.Struct, frozen=True, eq=False):
    """The broker of one run of a node, made of its stages."""

    foundation: Foundation
    plugins: Plugins
    listening: Listening
    access: ControllerAccess
    membership: Membership
    replicas: Replicas
    coordinators: Coordinators
    api_versions: ApiVersionsPublisher
    failed_brokers: FailedBrokers

    @property
    def publishers(self) -> list[Publisher]:
        """The metadata publishers in their order: ACLs and quotas are in force before clients can find a new topic."""
        listening = self.listening
        own = OwnRegistration(self.foundation.config.node_id)
        rules: list[Publisher | None] = [listening.rights, listening.quotas, listening.connection_quotas, own]
        rules += [self.plugins.telemetry, self.failed_brokers]
        followers = [*rules, self.replicas.publisher, self.api_versions]
        return [one for one in followers if one is not None]

    @property
    def not_ready(self) -> str | None:
        """Why this broker does not serve its clients, or None if it does."""
        registered = self.access.source.image.cluster.brokers.get(self.foundation.config.node_id)
        if registered is None:
            return "the broker is not registered"
        return "the broker is fenced" if registered.fenced else None

    async def register(self) -> None:
        """Register this broker, then open its partitions in the background."""
        await self.membership.register()
        self.replicas.publisher.release(self.membership.registration.epoch)

    async def leave(self) -> None:
        """Move leadership to other in-sync replicas before this broker stops (controlled shutdown)."""
        heartbeats, config = self.membership.heartbeats, self.foundation.config
        if heartbeats is None or not config.controlled_shutdown_enable:
            return
        publisher, data_plane = self.replicas.publisher, self.listening.data_plane

        def refused_as_no_leader() -> int:
            counted = data_plane.counters().apis
            return sum(api.errors.get(ErrorCode.NOT_LEADER_OR_FOLLOWER, 0) for api in counted)

        clients = MovedClients(
            lambda: leads_anything(publisher.image_in_force, config.node_id), refused_as_no_leader, time.monotonic
        )
        if await heartbeats.leave():
            await clients.removed()


def build_broker(
    foundation: Foundation,
    plugins: Plugins,
    listening: Listening,
    access: ControllerAccess,
    controller: Controller | None,
) -> BrokerPart:
    """Return a broker that is not registered. `controller` is the node's own controller, None without the role."""
    source = access.source
    followers: list[Callable[[MetadataImage], None]] = []

    def follow(image: MetadataImage) -> None:
        for follower in followers:
            follower(image)

    membership = build_membership(foundation, listening, access.channel)
    registration = membership.registration
    replicas = build_replicas(foundation, listening, registration, access.channel, follow)
    coordinators = build_coordinators(foundation, listening, replicas.partitions, registration, lambda: source.image)
    followers += [
        membership.follow,
        coordinators.brokers.follow,
        coordinators.groups.follow,
        coordinators.transactions.follow,
        replicas.in_sync.published,
        lambda _: replicas.deletions.published(),
        replicas.lag_checks.published,
    ]
    publisher, telemetry = replicas.publisher, plugins.telemetry
    access.follow(lambda: publisher.offset_in_force, publisher.published)
    if telemetry is not None:
        listening.events.on(ConnectionClosed, lambda event: telemetry.forget(event.connection))
    return BrokerPart(
        foundation,
        plugins,
        listening,
        access,
        membership,
        replicas,
        coordinators,
        ApiVersionsPublisher(listening.data_plane),
        _build_failed_brokers(foundation, source, controller),
    )


def _build_failed_brokers(
    foundation: Foundation, source: MetadataSource, controller: Controller | None
) -> FailedBrokers:
    """Return the record of failed brokers. Only a node with a controller detects failures by closed connections."""
    if controller is None:
        return FailedBrokers(lambda: source.image, foundation.clock.steady_ms)
    failed = FailedBrokers(lambda: source.image, foundation.clock.steady_ms, controller.poll_voters)
    controller.on_reach(lambda voter, reached: failed.reached(voter) if reached else failed.suspect(voter))
    return failed
