"""How this broker fetches from others: where they are on the inter-broker listener, and by which settings.

Arithmetic on the image and the settings. Must not know which partitions follow whom: roles say that.
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
"""Broker id, host, port and broker epoch: what `DataPlane.set_fetch_sources` takes."""

_FIRST_BACKOFF_MS = 10
"""The first wait after a refusal; a leader that learns of its part a little later is not asked a whole
replica.fetch.backoff.ms later (docs/adr/0044)."""


def plan_sources(cluster: ClusterImage, listener: str, node_id: int) -> list[Source]:
    """Return where the other brokers are fetched from, fenced ones included: they lead nothing."""
    return [
        (broker.id, *broker.listeners[listener], broker.epoch)
        for broker in cluster.brokers.values()
        if broker.id != node_id and listener in broker.listeners
    ]


def build_replication_settings(
    config: BrokerConfig, broker_epoch: int, security: RenewedSecurity | None = None
) -> ReplicationSettings:
    """Return how a broker with these settings, registered at this epoch, replicates.

    `security` is that of its connections, None for plaintext.
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
