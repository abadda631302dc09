"""The settings of the data plane: a complete struct, since the data plane has no defaults.

Owns the mapping from the broker's settings. Must not know the data plane.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.net.descriptors import connections_allowed
from pybroker.net.native import DataPlaneSettings

if TYPE_CHECKING:
    from pybroker.config.broker import BrokerConfig
    from pybroker.net.descriptors import Shares

_FETCH_SESSION_EVICTION_MS = 120_000  # Kafka's constant MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS
_THREAD_SLICE_US = 100  # the shortest that Linux supports (docs/adr/0084-threads-of-records-are-let-in-first.md)
_IN_WORK_PER_CONNECTION = 64  # requests of a connection in work before its earlier responses are sent


def build_data_plane_settings(
    config: BrokerConfig, shares: Shares, *, network_threads: int | None = None
) -> DataPlaneSettings:
    """Return the data plane's settings. `shares` limits its connections.

    `network_threads` overrides num.network.threads.
    """
    max_connections, reason = connections_allowed(shares, config.max_connections)
    return DataPlaneSettings(
        node_id=config.node_id,
        network_threads=config.num_network_threads if network_threads is None else network_threads,
        thread_slice_us=_THREAD_SLICE_US,
        socket_request_max_bytes=config.socket_request_max_bytes,
        socket_send_buffer_bytes=config.socket_send_buffer_bytes,
        socket_receive_buffer_bytes=config.socket_receive_buffer_bytes,
        queued_max_requests=config.queued_max_requests,
        requests_in_work_per_connection=_IN_WORK_PER_CONNECTION,
        queued_request_bytes=config.queued_max_request_bytes,
        queued_response_bytes_per_connection=config.queued_max_response_bytes_per_connection,
        queued_response_bytes=config.queued_max_response_bytes,
        connections_max_idle_ms=config.connections_max_idle_ms,
        max_connections=max_connections,
        max_connections_reason=reason,
        fetch_max_bytes=config.fetch_max_bytes,
        fetch_session_slots=config.max_incremental_fetch_session_cache_slots,
        fetch_session_eviction_ms=_FETCH_SESSION_EVICTION_MS,
    )
