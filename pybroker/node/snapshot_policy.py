"""The policy of metadata snapshots from a node's settings: the same for voters and observers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.quorum.snapshot.snapshot_policy import SnapshotPolicy

if TYPE_CHECKING:
    from pybroker.config.broker import BrokerConfig


def build_snapshot_policy(config: BrokerConfig) -> SnapshotPolicy:
    """Return how often snapshots are made, and how long they are kept."""
    return SnapshotPolicy(
        config.metadata_log_max_record_bytes_between_snapshots,
        config.metadata_log_max_snapshot_interval_ms,
        config.metadata_max_retention_bytes,
        config.metadata_max_retention_ms,
    )
