"""The controller of a node: its voter of the metadata quorum.

Owns the building of the controller. Must not know partitions or clients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.broker.shut_down import Stage
from pybroker.controller.cluster.settings import ClusterSettings
from pybroker.controller.quorum.settings import QuorumSettings
from pybroker.controller.service import Controller

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pybroker.metadata.publishers import Publisher
    from pybroker.node.foundation import Foundation


class ControllerPart:
    """One run of a node's controller."""

    def __init__(self, foundation: Foundation) -> None:
        """Build the controller, which is not open."""
        config, failures = foundation.config, foundation.failures
        self._foundation = foundation
        cluster = ClusterSettings(
            config.num_partitions,
            config.default_replication_factor,
            config.broker_session_timeout_ms,
            foundation.live,
        )
        metadata = foundation.directories.metadata.path
        quorum = QuorumSettings(metadata, foundation.cluster_id, config.node_id, voters=(config.node_id,))
        self.controller = Controller(cluster, quorum, lambda error: failures.end(f"the metadata log failed: {error}"))

    async def open(self, publishers: Iterable[Publisher]) -> None:
        """Open the metadata log, which `publishers` follow, and stand for election."""
        controller = self.controller
        await controller.open(publishers)
        self._foundation.shut_down.add(Stage.METADATA_LOG, controller, controller.stop)
        await controller.campaign()
