"""The composition root: the only place where everything meets.

Owns the order in which parts are built, and what is injected into what. Must not contain behaviour of a part. A request
does not pass here; this is where its way is laid.

Start: lock directories, listen, format, replay metadata, register, open partitions, answer. Clients that connect before
the last step wait and are answered then. Whatever fails before leaves nothing behind but what was there.
Stop: `pybroker.broker.shut_down` has the order; every part says where it is built how it ends.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from pybroker.broker.failures import Failures
from pybroker.broker.life import Life
from pybroker.broker.live_config import LiveConfig
from pybroker.broker.registration import Endpoints, Registration, RegistrationRefusedError
from pybroker.broker.shut_down import ShutDown, Stage
from pybroker.controller.cluster.settings import ClusterSettings
from pybroker.controller.errors import ControllerError
from pybroker.controller.local_channel import LocalChannel
from pybroker.controller.quorum.log_check import check_before_start
from pybroker.controller.quorum.settings import QuorumSettings
from pybroker.controller.service import Controller
from pybroker.coordinator.group.building import build_coordinator
from pybroker.coordinator.group.settings import build_settings
from pybroker.handlers.api_versions import encoded_answers
from pybroker.handlers.context import Contexts
from pybroker.handlers.registry import registered_apis
from pybroker.machine.clock import SYSTEM_CLOCK
from pybroker.metadata.errors import MetadataError
from pybroker.net import descriptors
from pybroker.net.api_versions import ApiVersionsPublisher
from pybroker.net.closing import close_connections, finish_requests
from pybroker.net.data_plane_settings import build_data_plane_settings
from pybroker.net.dispatch import Dispatch
from pybroker.net.listeners import ListenError, OpenListener, open_listeners
from pybroker.net.native import DataPlane
from pybroker.replica.publisher import PartitionPublisher
from pybroker.serving import build_pipeline, build_services
from pybroker.storage.directories import Directories
from pybroker.storage.errors import StorageError
from pybroker.storage.native import PartitionLog
from pybroker.storage.partitions import Partitions
from pybroker.storage.upkeep import Upkeep

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.broker.broker_state import BrokerState
    from pybroker.config.broker import BrokerConfig
    from pybroker.handlers.context import RequestContext
    from pybroker.machine.clock import Clock
    from pybroker.net.native import ControlRequest

log = logging.getLogger("pybroker")

_EXPECTED = (
    OSError,
    StorageError,
    ListenError,
    ControllerError,
    MetadataError,
    RegistrationRefusedError,
    descriptors.TooFewDescriptorsError,
)
"""What keeps a broker from starting and is no fault of ours."""


class NodeError(Exception):
    """The broker cannot start, or cannot go on; the text is one line that says what and where."""


class Node:
    """One broker and controller. Used from one event loop."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock = SYSTEM_CLOCK,
        intercepted: Callable[[ControlRequest, RequestContext], None] | None = None,
    ) -> None:
        """`intercepted` decides about the requests of the APIs that `data_plane.intercept` names."""
        self.config = config
        self._clock = clock
        self._intercepted = intercepted or (lambda *_: None)
        self._life = Life()
        # None exactly while no request is answered.
        self._run: _Run | None = None

    @property
    def state(self) -> BrokerState:
        """Where the broker is in its life."""
        return self._life.state

    @property
    def data_plane(self) -> DataPlane:
        """The data plane of a broker that runs; raises NodeError of one that does not."""
        return self._running().data_plane

    async def start(self) -> tuple[OpenListener, ...]:
        """Start, and return the listeners when the broker answers; raises NodeError, leaving nothing behind."""
        run = _Run(self.config, self._clock, self._intercepted)
        try:
            await self._life.start(run)
        except _EXPECTED as error:
            raise NodeError(str(error)) from error
        self._run = run
        return run.listeners

    async def stop(self) -> None:
        """Stop cleanly: what was acknowledged is on disk, and the next start needs no recovery."""
        await self._life.stop(self._running())
        self._run = None

    async def failed(self) -> NodeError:
        """Wait until the broker cannot go on, and return why."""
        return NodeError(await self._running().failures.reason())

    def _running(self) -> _Run:
        if self._run is None:
            raise NodeError("the broker is not running")
        return self._run


class _Run:
    """One run of a broker: its parts, in the order in which they are built. Each says there how it ends."""

    def __init__(
        self, config: BrokerConfig, clock: Clock, intercepted: Callable[[ControlRequest, RequestContext], None]
    ) -> None:
        self.config = config
        self._clock = clock
        self._intercepted = intercepted
        self.shut_down = ShutDown()

    async def listen(self) -> None:
        """Lock the directories, open the listeners, and give the directories an identity that have none."""
        config, end = self.config, self.shut_down.add
        self._shares = descriptors.divide()
        directories = Directories.acquire(config.log_directories, config.metadata_directory, config.node_id)
        end(Stage.DIRECTORIES, directories, lambda: asyncio.to_thread(directories.release))
        await asyncio.to_thread(check_before_start, directories)
        data_plane = self.data_plane = DataPlane(build_data_plane_settings(config, self._shares))
        end(Stage.ACCEPTING, data_plane, data_plane.stop_accepting)
        end(Stage.CONNECTIONS, data_plane, lambda: close_connections(data_plane))
        self.listeners = open_listeners(data_plane, config.endpoints, config.socket_listen_backlog_size)
        self.cluster_id = directories.format(config.node_id)
        self._directories = directories
        failures = self.failures = Failures(directories)
        end(Stage.DIRECTORIES, failures, failures.stop)

    async def join(self) -> None:
        """Replay the metadata, lead the quorum, and register; partitions are opened meanwhile."""
        end = self.shut_down.add
        live = self.live = LiveConfig(self.config)
        end(Stage.METADATA_LOG, live, live.stop)
        controller = self.controller = self._build_controller()
        self.channel = LocalChannel(controller)
        registration = Registration(self.config.node_id, self._directories, self.channel, ControllerError)
        self.registration = registration
        end(Stage.REPORTS, registration, registration.stop)
        publisher = self._build_replicas()
        self.failures.on_lost_directory(publisher.directory_failed)
        self.failures.on_survived(registration.report_failed_directories)
        live.subscribe(publisher.reconfigure)
        live.subscribe(lambda config: self.groups.reconfigure(build_settings(config)))
        self._api_versions = ApiVersionsPublisher(self.data_plane)
        await controller.open([live, publisher, self._api_versions])
        end(Stage.METADATA_LOG, controller, controller.stop)
        await controller.start()
        listeners = {listener.name: listener.reachable for listener in self.listeners}
        await registration.register(Endpoints(listeners, self.config.broker_rack))

    async def serve(self) -> None:
        """Answer requests, once everything is open that the metadata has here; keep the logs in order."""
        controller, publisher, partitions = self.controller, self.publisher, self.partitions
        apis = registered_apis()  # imports the handlers, while the workers open logs
        self._api_versions.begin(encoded_answers, controller.image)
        await publisher.published(controller.image.offset)
        partitions.set_aside_strays()
        upkeep = self._build_upkeep()
        await upkeep.resume_moves()
        contexts = Contexts(build_services(self))
        self.live.subscribe(contexts.reconfigure)
        pipeline = build_pipeline(self, Dispatch(apis), contexts, self._intercepted)
        self.shut_down.add(Stage.REQUESTS, pipeline, lambda: finish_requests(pipeline))
        self.shut_down.add(Stage.EVENTS, pipeline, pipeline.stop)
        pipeline.start()
        descriptors.say(self._shares, self.config, len(partitions.all()))
        await upkeep.begin()

    def _build_controller(self) -> Controller:
        config, live, failures = self.config, self.live, self.failures
        cluster = ClusterSettings(
            config.num_partitions, config.default_replication_factor, config.broker_session_timeout_ms, live
        )
        metadata = self._directories.metadata.path
        quorum = QuorumSettings(metadata, self.cluster_id, config.node_id, voters=(config.node_id,))
        return Controller(cluster, quorum, lambda error: failures.end(f"the metadata log failed: {error}"))

    def _build_replicas(self) -> PartitionPublisher:
        config, directories, end = self.config, self._directories, self.shut_down.add
        threads = config.num_recovery_threads_per_data_dir
        workers = self._workers = ThreadPoolExecutor(threads * len(directories.logs), "pybroker-storage")
        end(Stage.WORKERS, workers, workers.shutdown)
        partitions = self.partitions = Partitions(directories, self._clock.wall_ms, self.failures.report_directory)
        end(Stage.LOGS, "closing of the logs, which the next start recovers", self._close_logs)
        partitions.scan()
        for path, count in partitions.to_recover.items():
            log.info("recovering %d partitions in %s, as the last run did not stop cleanly", count, path)
        data_plane = self.data_plane
        groups = self.groups = build_coordinator(
            config, self._clock, find=partitions.get, open_log=lambda partition: PartitionLog(partition, data_plane)
        )
        end(Stage.PARKED_REQUESTS, groups, groups.close)
        publisher = self.publisher = PartitionPublisher(
            config, partitions, data_plane, workers, groups.follow, self.registration.report_placed
        )
        end(Stage.ROLES, publisher, publisher.stop)
        return publisher

    async def _close_logs(self) -> None:
        threads, epoch = self.config.num_recovery_threads_per_data_dir, self.registration.epoch
        await asyncio.to_thread(self.partitions.close, threads, epoch, clean=self.shut_down.is_clean)

    def _build_upkeep(self) -> Upkeep:
        live, failures = self.live, self.failures
        upkeep = self.upkeep = Upkeep(
            self.partitions,
            self._directories,
            self._workers,
            self._clock,
            config_of=lambda: live.current,
            settings_of=self.publisher.settings_of,
            log_files=self._shares.log_files,
            directory_failed=failures.report_directory,
            moved=self.publisher.moved,
        )
        self.shut_down.add(Stage.UPKEEP, upkeep, upkeep.end)
        self.shut_down.add(Stage.FLUSHES, "flushing of rolled logs", upkeep.flushed)
        failures.on_lost_directory(lambda _path: upkeep.moves.give_up_failed())
        live.subscribe(upkeep.reconfigure)
        return upkeep
