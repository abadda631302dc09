"""The channels of a broker to the active controller, configured from the node's settings.

Owns the number of connections for each kind of request: heartbeats, the broker's other requests, and forwarded client
requests. Must not know what the requests contain, nor when they are sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.forwarding_channel import Patience
from pybroker.controller.node_to_controller import ChannelSettings, NodeToControllerChannel

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.client.security.renewed import RenewedSecurity
    from pybroker.config.broker import BrokerConfig
    from pybroker.config.endpoint import Endpoint
    from pybroker.metadata.delta import MetadataDelta
    from pybroker.metadata.image import MetadataImage

_REQUEST_TIMEOUT_MS = 30_000
"""Kafka's request timeout, for one response of a controller."""
_PATIENCE_MS = 60_000
"""Kafka's total time for a request and its retries."""
_HEARTBEATS_IN_PROGRESS = 2
_OWN_CONNECTIONS, _OWN_IN_PROGRESS = 3, 100
_CLIENTS_CONNECTIONS = 4
"""A controller handles the requests of one connection in order: this many client requests can proceed in parallel."""


class Channels:
    """The channels to the active controller. Follows the metadata image as a publisher, to see new leader epochs."""

    def __init__(
        self, heartbeats: NodeToControllerChannel, requests: NodeToControllerChannel, clients: NodeToControllerChannel
    ) -> None:
        self.heartbeats = heartbeats
        self.requests = requests
        self.clients = clients
        self._epoch = -1

    def publish(self, _delta: MetadataDelta, image: MetadataImage, /) -> None:
        """Resend unanswered requests to the leader of a new epoch."""
        if image.epoch == self._epoch:
            return
        self._epoch = image.epoch
        for channel in (self.heartbeats, self.requests, self.clients):
            channel.leader_changed()

    async def close(self) -> None:
        """Close the connections; waiting requests raise `NotControllerError`."""
        for channel in (self.heartbeats, self.requests, self.clients):
            await channel.close()


def build_channels(
    config: BrokerConfig, find_leader: Callable[[], Endpoint | None], security: RenewedSecurity | None
) -> Channels:
    """Return the channels. `find_leader` returns the address of the active controller, or None if this node does not
    know it. `security` applies to connections to controllers; None means plaintext.
    """
    known = [(voter.host, voter.port) for voter in config.quorum_voters] or config.quorum_bootstrap_servers

    def build(name: str, connections: int, max_in_progress: int) -> NodeToControllerChannel:
        settings = ChannelSettings(
            client_id=str(config.node_id),
            request_timeout_ms=_REQUEST_TIMEOUT_MS,
            retry_backoff_ms=config.controller_quorum_retry_backoff_ms,
            connections=connections,
            max_in_progress=max_in_progress,
            security=security,
            unacknowledged_ms=config.controller_quorum_request_timeout_ms,
        )
        return NodeToControllerChannel(name, settings, find_leader, known)

    return Channels(
        build("heartbeats to the controller", 1, _HEARTBEATS_IN_PROGRESS),
        build("requests to the controller", _OWN_CONNECTIONS, _OWN_IN_PROGRESS),
        build("forwarding to the controller", _CLIENTS_CONNECTIONS, config.queued_max_requests),
    )


def build_patience(config: BrokerConfig) -> Patience:
    """Return how long requests are retried until an active controller responds."""
    return Patience(heartbeat_ms=max(config.broker_session_timeout_ms // 2, 1), request_ms=_PATIENCE_MS)
