"""A broker's membership in its cluster: its registration, renewed when its listeners change, and its heartbeats.

Must not know partitions, nor how the active controller is reached.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import msgspec

from pybroker.broker.heartbeat import Heartbeats
from pybroker.broker.lifecycle import LifecycleSettings
from pybroker.broker.registration import Endpoints, Registration, Unreported
from pybroker.broker.renewal import Renewal
from pybroker.broker.shut_down import Stage
from pybroker.controller.errors import ControllerError
from pybroker.replica.sources import build_replication_settings

if TYPE_CHECKING:
    from pybroker.config.broker import BrokerConfig
    from pybroker.controller.switching_channel import SwitchingChannel
    from pybroker.metadata.image import MetadataImage
    from pybroker.node.foundation import Foundation
    from pybroker.node.listening import Listening

log = logging.getLogger("pybroker")


class Membership(msgspec.Struct, frozen=True, eq=False):
    """The registration and the heartbeats of a broker."""

    foundation: Foundation
    listening: Listening
    registration: Registration
    heartbeats: Heartbeats | None
    """None in a single node: its controller runs as long as the broker."""

    async def register(self) -> None:
        """Register this broker, and register it again whenever its listeners change."""
        endpoints = self._endpoints()
        if self.heartbeats is None:
            await self.registration.register(endpoints)
        else:
            await self.heartbeats.register(endpoints)
        renewal = Renewal(self._register_anew, ControllerError)
        self.foundation.shut_down.add(Stage.REPORTS, renewal, renewal.stop)

        def renew(config: BrokerConfig) -> None:
            nonlocal endpoints
            before, endpoints = endpoints, self._endpoints()
            if endpoints != before:
                renewal.want()
            self._replicate(config)

        renew(self.foundation.live.current)
        self.foundation.live.subscribe(renew)
        # Connections to other brokers use the key stores of the inter-broker listener.
        self.listening.tls.on_renewed(lambda: self._replicate(self.foundation.live.current))

    def follow(self, image: MetadataImage) -> None:
        """Take over this broker's epoch from a newer image."""
        if self.heartbeats is not None and self.registration.follow(image):
            self._replicate(self.foundation.live.current)

    def _endpoints(self) -> Endpoints:
        """Return the advertised listeners and the rack."""
        listeners = self.listening.listeners.all
        return Endpoints(
            {one.name: one.reachable for one in listeners},
            {one.name: one.protocol_number for one in listeners},
            self.foundation.config.broker_rack,
        )

    async def _register_anew(self) -> None:
        """Register this broker again with its current listeners. It receives a new epoch."""
        endpoints = self._endpoints()
        await self.registration.register(endpoints, fenced=self.heartbeats is not None)
        names = ", ".join(sorted(endpoints.listeners))
        log.info("Registered again with broker epoch %d and the listeners %s", self.registration.epoch, names)
        self._replicate(self.foundation.live.current)

    def _replicate(self, config: BrokerConfig) -> None:
        """Apply the replication settings to the data plane."""
        settings = build_replication_settings(config, self.registration.epoch, self.foundation.outbound.brokers)
        self.listening.data_plane.set_replication(settings)


def build_membership(foundation: Foundation, listening: Listening, channel: SwitchingChannel) -> Membership:
    """Return the membership of a broker that is not registered."""
    config, failures, end = foundation.config, foundation.failures, foundation.shut_down.add
    unreported = Unreported(config.log_dir_failure_timeout_ms, failures.end)
    registration = Registration(config.node_id, foundation.directories, channel.active, ControllerError, unreported)
    end(Stage.REPORTS, registration, registration.stop)
    heartbeats = None
    if not config.is_single:
        settings = LifecycleSettings(config.broker_heartbeat_interval_ms, config.initial_broker_registration_timeout_ms)
        heartbeats = Heartbeats(config.node_id, registration, channel.active, ControllerError, settings, _steady_ms)
        end(Stage.REPORTS, heartbeats, heartbeats.stop)
    return Membership(foundation, listening, registration, heartbeats)


def _steady_ms() -> int:
    return int(time.monotonic() * 1000)
