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
from pybroker.broker.producer_ids import ProducerIds
from pybroker.broker.registration import Endpoints, Registration, RegistrationRefusedError
from pybroker.broker.shut_down import ShutDown, Stage
from pybroker.controller.cluster.settings import ClusterSettings
from pybroker.controller.errors import ControllerError
from pybroker.controller.local_channel import LocalChannel
from pybroker.controller.quorum.log_check import check_before_start
from pybroker.controller.quorum.settings import QuorumSettings
from pybroker.controller.service import Controller
from pybroker.coordinator.group.offsets_topic import OFFSETS_TOPIC
from pybroker.coordinator.group.service import GroupCoordinator
from pybroker.coordinator.group.settings import build_settings
from pybroker.handlers.api_versions import encoded_answers
from pybroker.handlers.context import Contexts, Services
from pybroker.handlers.encoded_topics import EncodedTopics
from pybroker.handlers.registry import registered_apis
from pybroker.machine.clock import SYSTEM_CLOCK
from pybroker.machine.slices import Slices
from pybroker.metadata.errors import MetadataError
from pybroker.net import descriptors
from pybroker.net.api_versions import ApiVersionsPublisher
from pybroker.net.closing import close_connections, finish_requests
from pybroker.net.data_plane_settings import build_data_plane_settings
from pybroker.net.dispatch import Dispatch
from pybroker.net.listeners import ListenError, OpenListener, advertised, open_listeners
from pybroker.net.native import DataPlane
from pybroker.net.pipeline import Pipeline
from pybroker.replica.publisher import PartitionPublisher
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
    from pybroker.net.native import ControlRequest, UnresolvedRequest

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

_LOGS = "closing of the logs, which the next start recovers"


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

    listeners: tuple[OpenListener, ...]
    data_plane: DataPlane
    failures: Failures

    def __init__(
        self, config: BrokerConfig, clock: Clock, intercepted: Callable[[ControlRequest, RequestContext], None]
    ) -> None:
        self._config = config
        self._clock = clock
        self._intercepted = intercepted
        self.shut_down = ShutDown()

    async def listen(self) -> None:
        """Lock the directories, open the listeners, and give the directories an identity that have none."""
        config, end = self._config, self.shut_down.add
        self._shares = descriptors.divide()
        directories = Directories.acquire(config.log_directories, config.metadata_directory, config.node_id)
        end(Stage.DIRECTORIES, directories, lambda: asyncio.to_thread(directories.release))
        await asyncio.to_thread(check_before_start, directories)
        data_plane = self.data_plane = DataPlane(build_data_plane_settings(config, self._shares))
        end(Stage.ACCEPTING, data_plane, data_plane.stop_accepting)
        end(Stage.CONNECTIONS, data_plane, lambda: close_connections(data_plane))
        self.listeners = open_listeners(data_plane, config.endpoints, config.socket_listen_backlog_size)
        self._cluster_id = directories.format(config.node_id)
        self._directories = directories
        failures = self.failures = Failures(directories)
        end(Stage.DIRECTORIES, failures, failures.stop)

    async def join(self) -> None:
        """Replay the metadata, lead the quorum, and register; partitions are opened meanwhile."""
        end = self.shut_down.add
        live = self._live = LiveConfig(self._config)
        end(Stage.METADATA_LOG, live, live.stop)
        controller = self._controller = self._build_controller()
        self._channel = LocalChannel(controller)
        registration = Registration(self._config.node_id, self._directories, self._channel, ControllerError)
        self._registration = registration
        end(Stage.REPORTS, registration, registration.stop)
        publisher = self._build_replicas()
        self.failures.on_lost_directory(publisher.directory_failed)
        self.failures.on_survived(registration.report_failed_directories)
        live.subscribe(publisher.reconfigure)
        live.subscribe(lambda config: self._groups.reconfigure(build_settings(config)))
        self._api_versions = ApiVersionsPublisher(self.data_plane)
        await controller.open([live, publisher, self._api_versions])
        end(Stage.METADATA_LOG, controller, controller.stop)
        await controller.campaign()
        listeners = {listener.name: listener.reachable for listener in self.listeners}
        await registration.register(Endpoints(listeners, self._config.broker_rack))

    async def serve(self) -> None:
        """Answer requests, once everything is open that the metadata has here; keep the logs in order."""
        controller, publisher, partitions = self._controller, self._publisher, self._partitions
        apis = registered_apis()  # imports the handlers, while the workers open logs
        self._api_versions.begin(encoded_answers, controller.image)
        await publisher.published(controller.image.offset)
        partitions.set_aside_strays()
        upkeep = self._build_upkeep()
        await upkeep.resume_moves()
        contexts = Contexts(self._build_services())
        self._live.subscribe(contexts.reconfigure)
        pipeline = self._build_pipeline(Dispatch(apis), contexts)
        self.shut_down.add(Stage.REQUESTS, pipeline, lambda: finish_requests(pipeline))
        self.shut_down.add(Stage.EVENTS, pipeline, pipeline.stop)
        pipeline.start()
        descriptors.say(self._shares, self._config, len(partitions.all()))
        await upkeep.begin()

    def _build_controller(self) -> Controller:
        config, live, failures = self._config, self._live, self.failures
        cluster = ClusterSettings(
            config.num_partitions, config.default_replication_factor, config.broker_session_timeout_ms, live
        )
        metadata = self._directories.metadata.path
        quorum = QuorumSettings(metadata, self._cluster_id, config.node_id, voters=(config.node_id,))
        return Controller(cluster, quorum, lambda error: failures.end(f"the metadata log failed: {error}"))

    def _build_replicas(self) -> PartitionPublisher:
        config, directories, end = self._config, self._directories, self.shut_down.add
        threads = config.num_recovery_threads_per_data_dir
        workers = self._workers = ThreadPoolExecutor(threads * len(directories.logs), "pybroker-storage")
        end(Stage.WORKERS, workers, workers.shutdown)
        partitions = self._partitions = Partitions(directories, self._clock.wall_ms, self.failures.report_directory)
        end(Stage.LOGS, _LOGS, self._close_logs)
        partitions.scan()
        for path, count in partitions.to_recover.items():
            log.info("recovering %d partitions in %s, as the last run did not stop cleanly", count, path)
        groups = self._groups = self._build_groups()
        end(Stage.PARKED_REQUESTS, groups, groups.close)
        publisher = self._publisher = PartitionPublisher(
            config, partitions, self.data_plane, workers, groups.follow, self._registration.report_placed
        )
        end(Stage.ROLES, publisher, publisher.stop)
        return publisher

    async def _close_logs(self) -> None:
        threads, epoch = self._config.num_recovery_threads_per_data_dir, self._registration.epoch
        await asyncio.to_thread(self._partitions.close, threads, epoch, clean=self.shut_down.is_clean)

    def _build_groups(self) -> GroupCoordinator:
        config, partitions, data_plane = self._config, self._partitions, self.data_plane

        def open_log(index: int) -> PartitionLog | None:
            partition = partitions.get(OFFSETS_TOPIC, index)
            return None if partition is None else PartitionLog(partition, data_plane)

        return GroupCoordinator(
            build_settings(config),
            node_id=config.node_id,
            partitions=config.offsets_topic_num_partitions,
            codec=config.offsets_topic_compression_codec,
            commit_timeout_ms=config.offsets_commit_timeout_ms,
            load_bytes=config.offsets_load_buffer_size,
            open_log=open_log,
            clock=self._clock,
        )

    def _build_upkeep(self) -> Upkeep:
        live, failures = self._live, self.failures
        upkeep = self._upkeep = Upkeep(
            self._partitions,
            self._directories,
            self._workers,
            self._clock,
            config_of=lambda: live.current,
            settings_of=self._publisher.settings_of,
            log_files=self._shares.log_files,
            directory_failed=failures.report_directory,
            moved=self._publisher.moved,
        )
        self.shut_down.add(Stage.UPKEEP, upkeep, upkeep.end)
        self.shut_down.add(Stage.FLUSHES, "flushing of rolled logs", upkeep.flushed)
        failures.on_lost_directory(lambda _path: upkeep.moves.give_up_failed())
        live.subscribe(upkeep.reconfigure)
        return upkeep

    def _build_services(self) -> Services:
        controller = self._controller
        return Services(
            config=self._live.current,
            cluster_id=self._cluster_id,
            image=lambda: controller.image,
            controller=self._channel,
            groups=self._groups,
            partitions=self._partitions,
            moves=self._upkeep.moves,
            publisher=self._publisher,
            producer_ids=ProducerIds(self._registration.allocate_producer_ids),
            retention=self._upkeep.retention,
            slices=Slices(),
            topics=EncodedTopics(),
            advertised=advertised(self.listeners),
        )

    async def _resolve(self, _request: UnresolvedRequest) -> None:
        # Topics that the image has are in the table once it is published; for all others the table's word holds.
        await self._publisher.published(self._controller.image.offset)

    def _build_pipeline(self, dispatch: Dispatch, contexts: Contexts) -> Pipeline:
        groups, upkeep = self._groups, self._upkeep
        return Pipeline(
            self.data_plane,
            dispatch,
            new_context=contexts.build,
            decide=self._resolve,
            directory_failed=lambda event: self.failures.lose_directory(event.directory, event.error),
            exhausted=lambda event: upkeep.open_files.step_exhausted(event.error),
            segment_rolled=lambda event: upkeep.flush_rolled(event.topic, event.index),
            append_settled=lambda event: groups.append_settled(event.ticket),
            max_in_work=self._config.queued_max_requests,
            max_elements=self._config.socket_request_max_elements,
            draining=groups.expect_step,
            drained=groups.step,
            intercepted=lambda request: self._intercepted(request, contexts.build(request)),
        )
