"""The metadata of a node without the controller role: an observer of the quorum's log.

Owns the building of the observer from the node's settings. Must not know the metadata publishers.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pybroker.broker.shut_down import Stage
from pybroker.controller.quorum.observer import Observer, ObserverSettings
from pybroker.node.measuring import of_metadata
from pybroker.node.snapshot_policy import build_snapshot_policy
from pybroker.storage.log_dirs.meta_properties import id_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pybroker.metadata.publishers import Publisher
    from pybroker.node.foundation import Foundation


def build_observer(foundation: Foundation) -> Observer:
    """Return the observer. Its log is not open yet."""
    failures = foundation.failures
    observer = Observer(
        _settings(foundation),
        lambda error: failures.end(f"the copy of the metadata log failed: {error}"),
        clock=foundation.clock,
    )
    foundation.metrics.add(partial(of_metadata, observer))
    return observer


async def start_observer(foundation: Foundation, observer: Observer, publishers: Iterable[Publisher]) -> None:
    """Open the copy of the metadata log, publish its images, and start to fetch from the quorum's leader."""
    await observer.open(publishers)
    foundation.shut_down.add(Stage.METADATA_LOG, observer, observer.stop)
    observer.start()


def _settings(foundation: Foundation) -> ObserverSettings:
    config, metadata = foundation.config, foundation.directories.metadata
    return ObserverSettings(
        directory=metadata.path,
        cluster_id=foundation.cluster_id,
        node_id=config.node_id,
        directory_id=id_bytes(metadata.meta.directory_id) if metadata.meta is not None else bytes(16),
        voters=tuple((voter.node_id, voter.host, voter.port) for voter in config.quorum_voters),
        bootstrap_servers=config.quorum_bootstrap_servers,
        segment_bytes=config.metadata_log_segment_bytes,
        segment_ms=config.metadata_log_segment_ms,
        request_timeout_ms=config.controller_quorum_request_timeout_ms,
        retry_backoff_ms=config.controller_quorum_retry_backoff_ms,
        fetch_max_bytes=config.controller_quorum_fetch_max_bytes,
        snapshot_piece_bytes=config.controller_quorum_fetch_snapshot_max_bytes,
        snapshots=build_snapshot_policy(config),
        security=foundation.outbound.controllers,
    )
