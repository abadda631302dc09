"""The controller of a node: its voter of the metadata quorum.

Owns the building of the controller. Must not know partitions or clients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.broker.shut_down import Stage
from pybroker.controller.cluster.settings import NEVER, ClusterSettings
from pybroker.controller.quorum.settings import QuorumSettings
from pybroker.controller.service import Controller

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pybroker.config.broker import BrokerConfig
    from pybroker.controller.cluster.settings import ConfigRules
    from pybroker.metadata.publishers import Publisher
    from pybroker.node.foundation import Foundation


def build_cluster_settings(config: BrokerConfig, rules: ConfigRules) -> ClusterSettings:
    """Return what the cluster machine is configured with."""
    balances = config.auto_leader_rebalance_enable
    return ClusterSettings(
        config.num_partitions,
        config.default_replication_factor,
        config.broker_session_timeout_ms,
        rules,
        imbalance_check_interval_ms=config.leader_imbalance_check_interval_seconds * 1000 if balances else NEVER,
        imbalance_percentage=config.leader_imbalance_per_broker_percentage,
        unclean_election_interval_ms=config.unclean_leader_election_interval_ms,
        # Nobody follows the log of a node without a listener for controllers.
        no_op_interval_ms=config.metadata_max_idle_interval_ms if config.controller_listener_names else NEVER,
    )


class ControllerPart:
    """One run of a node's controller."""

    def __init__(self, foundation: Foundation) -> None:
        """Build the controller, which is not open."""
        config, failures = foundation.config, foundation.failures
        self._foundation = foundation
        cluster = build_cluster_settings(config, foundation.live)
        metadata = foundation.directories.metadata.path
        quorum = QuorumSettings(metadata, foundation.cluster_id, config.node_id, voters=(config.node_id,))
        self.controller = Controller(cluster, quorum, lambda error: failures.end(f"the metadata log failed: {error}"))

    async def open(self, publishers: Iterable[Publisher]) -> None:
        """Open the metadata log, which `publishers` follow, and stand for election."""
        controller = self.controller
        await controller.open(publishers)
        self._foundation.shut_down.add(Stage.METADATA_LOG, controller, controller.stop)
        await controller.campaign()
