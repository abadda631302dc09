"""How this broker fetches from other brokers: their inter-broker endpoints, and the replication settings.

Computed from the image and the configuration. Must not know which leader a partition follows: roles contain it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.config.keys.topic_keys import RACK_AWARE
from pybroker.replica.native import ReplicationSettings

if TYPE_CHECKING:
    from pybroker.client.security.renewed import RenewedSecurity
    from pybroker.config.broker import BrokerConfig
    from pybroker.metadata.image import ClusterImage

Source = tuple[int, str, int, int]
"""Broker id, host, port and broker epoch: an argument of `DataPlane.set_fetch_sources`."""

_FIRST_BACKOFF_MS = 10
"""The first backoff after an error. A leader that learns of its leadership slightly later is not delayed by a whole
replica.fetch.backoff.ms (docs/adr/0044)."""


def plan_sources(cluster: ClusterImage, listener: str, node_id: int) -> list[Source]:
    """Return the fetch endpoints of the other brokers. Fenced brokers are included; they lead no partition."""
    return [
        (broker.id, *broker.listeners[listener], broker.epoch)
        for broker in cluster.brokers.values()
        if broker.id != node_id and listener in broker.listeners
    ]


def build_replication_settings(
    config: BrokerConfig, broker_epoch: int, security: RenewedSecurity | None = None
) -> ReplicationSettings:
    """Return the replication settings of a broker with this configuration and broker epoch.

    `security` applies to its connections, None for plaintext.
    """
    return ReplicationSettings(
        node_id=config.node_id,
        broker_epoch=broker_epoch,
        min_bytes=config.replica_fetch_min_bytes,
        max_wait_ms=config.replica_fetch_wait_max_ms,
        max_bytes=config.replica_fetch_max_bytes,
        response_max_bytes=config.replica_fetch_response_max_bytes,
        first_backoff_ms=min(_FIRST_BACKOFF_MS, config.replica_fetch_backoff_ms),
        backoff_ms=config.replica_fetch_backoff_ms,
        fetchers=config.num_replica_fetchers,
        socket_timeout_ms=config.replica_socket_timeout_ms,
        path_timeout_ms=config.controller_quorum_request_timeout_ms,
        socket_receive_buffer_bytes=config.replica_socket_receive_buffer_bytes,
        leader_throttled_rate=config.leader_replication_throttled_rate,
        follower_throttled_rate=config.follower_replication_throttled_rate,
        throttle_samples=config.replication_quota_window_num,
        throttle_sample_ms=config.replication_quota_window_size_seconds * 1000,
        eager_high_watermark=config.replica_selector_class == RACK_AWARE,
        tls=None if security is None else security.tls,
        credentials=None if security is None else security.credentials,
    )
