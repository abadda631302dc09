"""The broker of a node: its listeners, partitions and coordinators, and its membership of the cluster.

Owns the order in which its parts are built; each says there how it ends. Must not know how the metadata is agreed on.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from pybroker.broker.registration import Endpoints, Registration
from pybroker.broker.shut_down import Stage
from pybroker.controller.errors import ControllerError
from pybroker.controller.local_channel import LocalChannel
from pybroker.coordinator.group.building import build_coordinator
from pybroker.coordinator.group.settings import build_settings
from pybroker.handlers.api_versions import encoded_answers
from pybroker.handlers.context import Contexts
from pybroker.handlers.registry import registered_apis
from pybroker.net import descriptors
from pybroker.net.api_versions import ApiVersionsPublisher
from pybroker.net.closing import close_connections, finish_requests
from pybroker.net.data_plane_settings import build_data_plane_settings
from pybroker.net.dispatch import Dispatch
from pybroker.net.listeners import OpenListener, open_listeners
from pybroker.net.native import DataPlane
from pybroker.replica.publisher import PartitionPublisher
from pybroker.serving import build_pipeline, build_services
from pybroker.storage.native import PartitionLog
from pybroker.storage.partitions import Partitions
from pybroker.storage.upkeep import Upkeep

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.broker.failures import Failures
    from pybroker.controller.service import Controller
    from pybroker.handlers.context import RequestContext
    from pybroker.metadata.publishers import Publisher
    from pybroker.net.native import ControlRequest
    from pybroker.node.foundation import Foundation

log = logging.getLogger("pybroker")


class BrokerPart:
    """One run of a node's broker: its parts, in the order in which they are built."""

    listeners: tuple[OpenListener, ...]
    controller: Controller

    def __init__(self, foundation: Foundation, intercepted: Callable[[ControlRequest, RequestContext], None]) -> None:
        """`intercepted` decides about the requests of the APIs that `data_plane.intercept` names."""
        self._foundation = foundation
        self._intercepted = intercepted
        self.config = foundation.config
        self.live = foundation.live

    @property
    def cluster_id(self) -> str:
        """The cluster that the node's directories belong to."""
        return self._foundation.cluster_id

    @property
    def failures(self) -> Failures:
        """What the broker does not survive."""
        return self._foundation.failures

    def listen(self) -> None:
        """Open the listeners, on which nobody is answered yet; raises ListenError."""
        config, end = self.config, self._foundation.shut_down.add
        data_plane = self.data_plane = DataPlane(build_data_plane_settings(config, self._foundation.shares))
        end(Stage.ACCEPTING, data_plane, data_plane.stop_accepting)
        end(Stage.CONNECTIONS, data_plane, lambda: close_connections(data_plane))
        self.listeners = open_listeners(data_plane, config.broker_endpoints, config.socket_listen_backlog_size)

    def build(self, controller: Controller) -> list[Publisher]:
        """Build what follows the metadata, and return it in the order in which it has to follow."""
        end, failures, live = self._foundation.shut_down.add, self.failures, self.live
        self.controller = controller
        self.channel = LocalChannel(controller)
        registration = Registration(self.config.node_id, self._foundation.directories, self.channel, ControllerError)
        self.registration = registration
        end(Stage.REPORTS, registration, registration.stop)
        publisher = self._build_replicas()
        failures.on_lost_directory(publisher.directory_failed)
        failures.on_survived(registration.report_failed_directories)
        live.subscribe(publisher.reconfigure)
        live.subscribe(lambda config: self.groups.reconfigure(build_settings(config)))
        self._api_versions = ApiVersionsPublisher(self.data_plane)
        return [publisher, self._api_versions]

    async def register(self) -> None:
        """Become a broker of the cluster; partitions are opened meanwhile."""
        listeners = {listener.name: listener.reachable for listener in self.listeners}
        await self.registration.register(Endpoints(listeners, self.config.broker_rack))

    async def serve(self) -> None:
        """Answer requests, once everything is open that the metadata has here; keep the logs in order."""
        controller, publisher, partitions = self.controller, self.publisher, self.partitions
        end = self._foundation.shut_down.add
        apis = registered_apis()  # imports the handlers, while the workers open logs
        self._api_versions.begin(encoded_answers, controller.image)
        await publisher.published(controller.image.offset)
        partitions.set_aside_strays()
        upkeep = self._build_upkeep()
        await upkeep.resume_moves()
        contexts = Contexts(build_services(self))
        self.live.subscribe(contexts.reconfigure)
        pipeline = build_pipeline(self, Dispatch(apis), contexts, self._intercepted)
        end(Stage.REQUESTS, pipeline, lambda: finish_requests(pipeline))
        end(Stage.EVENTS, pipeline, pipeline.stop)
        pipeline.start()
        descriptors.say(self._foundation.shares, self.config, len(partitions.all()))
        await upkeep.begin()

    def _build_replicas(self) -> PartitionPublisher:
        config, directories = self.config, self._foundation.directories
        end, clock = self._foundation.shut_down.add, self._foundation.clock
        threads = config.num_recovery_threads_per_data_dir
        workers = self._workers = ThreadPoolExecutor(threads * len(directories.logs), "pybroker-storage")
        end(Stage.WORKERS, workers, workers.shutdown)
        partitions = self.partitions = Partitions(directories, clock.wall_ms, self.failures.report_directory)
        end(Stage.LOGS, "closing of the logs, which the next start recovers", self._close_logs)
        partitions.scan()
        for path, count in partitions.to_recover.items():
            log.info("recovering %d partitions in %s, as the last run did not stop cleanly", count, path)
        data_plane = self.data_plane
        groups = self.groups = build_coordinator(
            config, clock, find=partitions.get, open_log=lambda partition: PartitionLog(partition, data_plane)
        )
        end(Stage.PARKED_REQUESTS, groups, groups.close)
        publisher = self.publisher = PartitionPublisher(
            config, partitions, data_plane, workers, groups.follow, self.registration.report_placed
        )
        end(Stage.ROLES, publisher, publisher.stop)
        return publisher

    async def _close_logs(self) -> None:
        threads, epoch = self.config.num_recovery_threads_per_data_dir, self.registration.epoch
        clean = self._foundation.shut_down.is_clean
        await asyncio.to_thread(self.partitions.close, threads, epoch, clean=clean)

    def _build_upkeep(self) -> Upkeep:
        live, failures = self.live, self.failures
        upkeep = self.upkeep = Upkeep(
            self.partitions,
            self._foundation.directories,
            self._workers,
            self._foundation.clock,
            config_of=lambda: live.current,
            settings_of=self.publisher.settings_of,
            log_files=self._foundation.shares.log_files,
            directory_failed=failures.report_directory,
            moved=self.publisher.moved,
        )
        end = self._foundation.shut_down.add
        end(Stage.UPKEEP, upkeep, upkeep.end)
        end(Stage.FLUSHES, "flushing of rolled logs", upkeep.flushed)
        failures.on_lost_directory(lambda _path: upkeep.moves.give_up_failed())
        live.subscribe(upkeep.reconfigure)
        return upkeep
