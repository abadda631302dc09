"""The parts that all roles of a node share: directories and their identity, settings in force, and failures.

Owns the directory locks from start to stop, and the shutdown order. Must not know roles.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pybroker.broker.failures import Failures
from pybroker.broker.live_config import LiveConfig
from pybroker.broker.shut_down import ShutDown, Stage
from pybroker.controller.quorum.log.log_check import check_before_start
from pybroker.net import descriptors
from pybroker.node.measuring import MetricSources
from pybroker.node.outbound import Outbound
from pybroker.security.mutation_quotas import MutationQuotas
from pybroker.serving import build_principal_builder
from pybroker.storage.log_dirs.directories import Directories

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pybroker.config.broker import BrokerConfig
    from pybroker.machine.clock import Clock
    from pybroker.net.dispatch import Api


class Foundation:
    """The shared parts of one run of a node. Used from one event loop."""

    directories: Directories
    failures: Failures
    cluster_id: str

    def __init__(self, config: BrokerConfig, clock: Clock) -> None:
        """Read the settings and the key stores of outbound connections.

        `lock` and `identify` make the rest. Raises ConfigError.
        """
        self.config = config
        self.clock = clock
        self.shut_down = ShutDown()
        self.live = LiveConfig(config)
        self.outbound = Outbound(config)
        self.live.subscribe(self.outbound.reconfigure)
        self.mutations = MutationQuotas(config.controller_quota_window_num, config.controller_quota_window_size_seconds)
        self.metrics = MetricSources(config, self.mutations)
        self.principal_builder = build_principal_builder(config)
        self.shares: descriptors.Shares
        self.traced: Callable[[Mapping[int, Api]], Mapping[int, Api]] = lambda apis: apis
        """Wraps APIs whose requests are traced; returns the others unchanged."""

    async def lock(self) -> None:
        """Lock the directories and check their content without changes. Raises the reason why the node cannot start."""
        config, end = self.config, self.shut_down.add
        self.shares = descriptors.divide()
        directories = Directories.acquire(config.log_directories, config.metadata_directory, config.node_id)
        end(Stage.DIRECTORIES, directories, lambda: asyncio.to_thread(directories.release))
        if not config.makes_its_cluster:
            directories.require_identity()
        if config.is_controller:  # A node without the controller role can fetch its copy of the metadata log again.
            await asyncio.to_thread(check_before_start, directories, config.node_id, config.voter_ids)
        self.directories = directories

    def identify(self) -> None:
        """Format the directories that are not formatted. Called after all checks of the start."""
        end = self.shut_down.add
        self.cluster_id = self.directories.format(self.config.node_id)
        failures = self.failures = Failures(self.directories)
        end(Stage.DIRECTORIES, failures, failures.stop)
        live = self.live
        end(Stage.METADATA_LOG, live, live.stop)
