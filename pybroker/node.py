"""The composition root: the only place where everything meets, and the life of a broker from start to stop.

Owns the order in which parts come and go, and what is injected into what. Must not contain behaviour of a part. A
request does not pass here; this is where its way is laid.

Start: lock directories, listen, format, replay metadata, open partitions, answer. Clients that connect before the last
step wait and are answered then. Whatever fails before leaves nothing behind but what was there.
Stop: close listeners, finish requests, close connections, flush and close logs, write checkpoints and the
clean-shutdown files, close the metadata log, give the locks back.
"""

from __future__ import annotations

import asyncio
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from pybroker.broker.broker_state import BROKER_LIFE, BrokerEvent, BrokerState
from pybroker.broker.directory_reports import DirectoryReports
from pybroker.broker.ending import ended
from pybroker.broker.live_config import LiveConfig
from pybroker.broker.producer_ids import ProducerIds
from pybroker.config.group import group_fault
from pybroker.config.topic import topic_fault
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
from pybroker.handlers.context import RequestContext, Services
from pybroker.handlers.encoded_topics import EncodedTopics
from pybroker.handlers.registry import registered_apis
from pybroker.machine.clock import SYSTEM_CLOCK
from pybroker.machine.slices import Slices
from pybroker.metadata.errors import MetadataError
from pybroker.metadata.features import SUPPORTED_FEATURES
from pybroker.net import descriptors
from pybroker.net.api_versions import ApiVersionsPublisher
from pybroker.net.data_plane_settings import build_data_plane_settings
from pybroker.net.dispatch import Dispatch
from pybroker.net.listeners import ListenError, OpenListener, open_listeners
from pybroker.net.native import DataPlane
from pybroker.net.pipeline import Pipeline
from pybroker.replica.publisher import PartitionPublisher
from pybroker.storage.chores import begin_chores
from pybroker.storage.cleaner import Cleaner
from pybroker.storage.directories import Directories
from pybroker.storage.errors import StorageError
from pybroker.storage.meta_properties import id_bytes
from pybroker.storage.moves import LogMoves
from pybroker.storage.native import PartitionLog
from pybroker.storage.open_files import OpenFiles
from pybroker.storage.partitions import Partitions
from pybroker.storage.retention import Retention

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from pybroker.config.broker import BrokerConfig
    from pybroker.machine.clock import Clock
    from pybroker.net.native import ControlRequest, SegmentRolled, UnresolvedRequest
    from pybroker.replica.publisher import Placed
    from pybroker.storage.moves import Move

log = logging.getLogger("pybroker")

_PLAINTEXT = 0  # Kafka's number of the security protocol
_FINISH_MS = 3000  # how long requests in work may take at a stop before their connections are closed

_EXPECTED = (OSError, StorageError, ListenError, ControllerError, MetadataError, descriptors.TooFewDescriptorsError)
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
        self.state = BrokerState.NOT_RUNNING
        self.listeners: tuple[OpenListener, ...] = ()
        # Each part is None exactly while it is not running.
        self._directories: Directories | None = None
        self._data_plane: DataPlane | None = None
        self._controller: Controller | None = None
        self._channel: LocalChannel | None = None
        self._groups: GroupCoordinator | None = None
        self._pipeline: Pipeline | None = None
        self._partitions: Partitions | None = None
        self._publisher: PartitionPublisher | None = None
        self._cleaner: Cleaner | None = None
        self._moves: LogMoves | None = None
        self._reports = DirectoryReports()
        self._live = LiveConfig(config, self._reconfigure)
        self._services: Services | None = None
        self._retention: Retention | None = None
        self._workers: ThreadPoolExecutor | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._chores: list[asyncio.Task[None]] = []
        # Flushes of logs that rolled; empty before the logs are closed.
        self._flushes: set[asyncio.Future[None]] = set()
        self._broker_epoch = -1
        self._failure: asyncio.Future[NodeError] | None = None

    async def start(self) -> tuple[OpenListener, ...]:
        """Start, and return the listeners when the broker answers; raises NodeError, leaving nothing behind."""
        self._happen(BrokerEvent.START)
        self._loop = asyncio.get_running_loop()
        self._failure = self._loop.create_future()
        try:
            await self._start()
        except BaseException as error:
            self._happen(BrokerEvent.FAIL)
            await self._take_down(clean=False)
            self._happen(BrokerEvent.END)
            if isinstance(error, _EXPECTED):
                raise NodeError(str(error)) from error
            raise
        self._happen(BrokerEvent.ANSWER)
        return self.listeners

    @property
    def data_plane(self) -> DataPlane:
        """The data plane of a broker that runs; raises NodeError of one that does not."""
        if self._data_plane is None:
            raise NodeError("the broker is not running")
        return self._data_plane

    async def stop(self) -> None:
        """Stop cleanly: what was acknowledged is on disk, and the next start needs no recovery."""
        self._happen(BrokerEvent.STOP)
        # With one broker there is nobody to move leadership to.
        self._happen(BrokerEvent.LEAVE)
        await self._take_down(clean=True)
        self._happen(BrokerEvent.END)

    async def failed(self) -> NodeError:
        """Wait until the broker cannot go on, and return why."""
        if self._failure is None:
            raise NodeError("the broker is not running")
        return await asyncio.shield(self._failure)

    def _happen(self, event: BrokerEvent) -> None:
        self.state = BROKER_LIFE.following(self.state, event)
        log.debug("broker state: %s", self.state.name)

    async def _start(self) -> None:
        config = self.config
        shares = descriptors.divide()
        metadata, node_id = config.metadata_directory, config.node_id
        directories = self._directories = Directories.acquire(config.log_directories, metadata, node_id)
        await asyncio.to_thread(check_before_start, directories)
        data_plane = self._data_plane = DataPlane(build_data_plane_settings(config, shares))
        self.listeners = open_listeners(data_plane, config.endpoints, config.socket_listen_backlog_size)
        cluster_id = directories.format(config.node_id)
        self._happen(BrokerEvent.LISTEN)
        workers = self._workers = ThreadPoolExecutor(
            config.num_recovery_threads_per_data_dir * len(directories.logs), "pybroker-storage"
        )
        partitions = self._partitions = Partitions(directories, self._clock.wall_ms, self._failure_reporter())
        partitions.scan()
        for path, count in partitions.to_recover.items():
            log.info("recovering %d partitions in %s, as the last run did not stop cleanly", count, path)
        self._reports = DirectoryReports()
        groups = self._groups = self._make_groups(partitions, data_plane)
        publisher = self._publisher = PartitionPublisher(
            config, partitions, data_plane, workers, groups.follow, self._report_placed
        )
        api_versions = ApiVersionsPublisher(data_plane)
        controller = self._make_controller(directories, cluster_id)
        await controller.open([self._live, publisher, api_versions])
        self._controller = controller
        await controller.campaign()
        channel = self._channel = LocalChannel(controller)
        await self._register(channel, directories)
        apis = registered_apis()  # imports the handlers, while the workers open logs
        api_versions.begin(encoded_answers, controller.image)
        await publisher.published(controller.image.offset)
        partitions.set_aside_strays()
        moves = self._moves = self._make_moves(partitions, directories)
        await asyncio.get_running_loop().run_in_executor(workers, moves.resume)
        retention = self._retention = Retention(partitions, publisher.settings_of, self._later, self._clock.wall_ms)
        open_files = OpenFiles(partitions, shares.log_files, workers)
        self._lay_pipeline(
            Dispatch(apis),
            cluster_id,
            controller,
            groups,
            partitions,
            moves,
            publisher,
            retention,
            open_files,
            data_plane,
        )
        self._chores = begin_chores(config, partitions, retention, open_files, workers, self._clock)
        descriptors.say(shares, config, len(partitions.all()))
        await self._begin_cleaning(partitions, moves, publisher, workers)

    def _make_moves(self, partitions: Partitions, directories: Directories) -> LogMoves:
        config, loop = self._live.current, asyncio.get_running_loop()

        def moved(move: Move) -> None:
            if self._cleaner is not None:
                self._cleaner.follow_move(move.key, move.source, move.target)
            if self._publisher is not None:
                loop.call_soon_threadsafe(self._publisher.moved, move.partition.topic)

        return LogMoves(
            partitions,
            directories,
            threads=config.num_replica_alter_log_dirs_threads or len(directories.logs),
            max_bytes_per_second=config.replica_alter_log_dirs_io_max_bytes_per_second,
            directory_failed=self._failure_reporter(),
            moved=moved,
        )

    def _make_groups(self, partitions: Partitions, data_plane: DataPlane) -> GroupCoordinator:
        config = self.config

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

    def _make_controller(self, directories: Directories, cluster_id: str) -> Controller:
        config, live = self.config, self._live
        cluster = ClusterSettings(
            num_partitions=config.num_partitions,
            replication_factor=config.default_replication_factor,
            validate_topic_configs=lambda overrides: topic_fault(overrides, live.current),
            session_timeout_ms=config.broker_session_timeout_ms,
            validate_broker_configs=live.fault,
            list_inherited=live.list_inherited,
            validate_group_configs=lambda configs: group_fault(configs, live.current),
        )
        quorum = QuorumSettings(directories.metadata.path, cluster_id, config.node_id, voters=(config.node_id,))
        return Controller(cluster, quorum, lambda error: self._fail(f"the metadata log failed: {error}"))

    def _reconfigure(self, config: BrokerConfig) -> None:
        """Put the broker's changed settings in force: in the logs, and for every request from now on."""
        if self._publisher is not None:
            self._publisher.reconfigure(config)
        if self._groups is not None:
            self._groups.reconfigure(build_settings(config))
        if self._moves is not None:
            self._moves.set_pace(config.replica_alter_log_dirs_io_max_bytes_per_second)
        if self._services is not None:
            self._services = self._services._replace(config=config)

    async def _register(self, controller: LocalChannel, directories: Directories) -> None:
        registered = await controller.register_broker(
            self.config.node_id,
            incarnation_id=os.urandom(16),
            listeners={listener.name: listener.reachable for listener in self.listeners},
            security_protocols=dict.fromkeys((listener.name for listener in self.listeners), _PLAINTEXT),
            rack=self.config.broker_rack,
            log_dirs=tuple(id_bytes(directory.meta.directory_id) for directory in directories.online if directory.meta),
            features=SUPPORTED_FEATURES,
            fenced=False,
        )
        if registered.error_code:
            raise NodeError(f"the controller refused this broker: {registered.error_message}")
        self._broker_epoch = registered.broker_epoch
        self._reports.registered()

    def _report_placed(self, placed: Mapping[Placed, bytes]) -> None:
        """Report to the controller where partitions lie."""
        self._report(lambda it: it.assign_replicas(self.config.node_id, self._broker_epoch, placed))

    def _report_failed(self, directories: Directories) -> None:
        """Report to the controller which log directories failed; it knows those that were reported before."""
        ids = [id_bytes(it.meta.directory_id) for it in directories.logs if it.offline and it.meta is not None]
        self._report(lambda it: it.fail_log_directories(self.config.node_id, self._broker_epoch, ids))

    def _report(self, send: Callable[[LocalChannel], Awaitable[object]]) -> None:
        async def report() -> None:
            try:
                if self._channel is not None:
                    await send(self._channel)
            except ControllerError as error:
                # The broker ends with its controller, and says at its next registration which directories work.
                log.warning("the log directories could not be reported to the controller: %s", error)

        self._reports.add(report)

    def _lay_pipeline(
        self,
        dispatch: Dispatch,
        cluster_id: str,
        controller: Controller,
        groups: GroupCoordinator,
        partitions: Partitions,
        moves: LogMoves,
        publisher: PartitionPublisher,
        retention: Retention,
        open_files: OpenFiles,
        data_plane: DataPlane,
    ) -> None:
        channel = LocalChannel(controller)
        services = self._services = Services(
            config=self._live.current,
            cluster_id=cluster_id,
            image=lambda: controller.image,
            controller=channel,
            groups=groups,
            partitions=partitions,
            moves=moves,
            publisher=publisher,
            producer_ids=ProducerIds(lambda: channel.allocate_producer_ids(self.config.node_id, self._broker_epoch)),
            retention=retention,
            slices=Slices(),
            topics=EncodedTopics(),
            advertised={
                listener.name: (listener.advertised.host, listener.advertised.port)
                for listener in self.listeners
                if listener.advertised is not None
            },
        )

        def new_context(it: ControlRequest) -> RequestContext:
            # The services in force when a request comes: a change of settings replaces them.
            return RequestContext(self._services or services, it, controller.image, it.api_version)

        async def decide(_request: UnresolvedRequest) -> None:
            # Topics that the image has are in the table once it is published; for all others the table's word holds.
            await publisher.published(controller.image.offset)

        self._pipeline = Pipeline(
            data_plane,
            dispatch,
            new_context=new_context,
            decide=decide,
            directory_failed=lambda event: self._lose_directory(event.directory, event.error),
            exhausted=lambda event: open_files.step_exhausted(event.error),
            segment_rolled=self._segment_rolled,
            append_settled=lambda event: groups.append_settled(event.ticket),
            max_in_work=self.config.queued_max_requests,
            max_elements=self.config.socket_request_max_elements,
            draining=groups.expect_step,
            drained=groups.step,
            intercepted=lambda it: self._intercepted(it, new_context(it)),
        )
        self._pipeline.start()

    def _failure_reporter(self) -> Callable[[Path, OSError], None]:
        """Return the function with which worker threads report a failed directory to the loop."""
        loop = asyncio.get_running_loop()

        def report(path: Path, error: OSError) -> None:
            loop.call_soon_threadsafe(self._lose_directory, str(path), str(error))

        return report

    def _lose_directory(self, path: str, error: str) -> None:
        """Take a directory out of use; without the last one, or that of the metadata, the broker cannot go on."""
        log.error("log directory %s failed: %s", path, error)
        directories, publisher = self._directories, self._publisher
        if directories is None or publisher is None:
            return
        publisher.directory_failed(path)
        if self._moves is not None:
            self._moves.give_up_failed()
        if directories.metadata.offline or not directories.online:
            self._fail(f"log directory {path} failed: {error}")
        else:
            self._report_failed(directories)

    def _segment_rolled(self, event: SegmentRolled) -> None:
        """Flush a log that began a new segment: its recovery point follows, and a crash has one segment to scan."""
        partitions, workers = self._partitions, self._workers
        if partitions is None or workers is None:
            return
        flushing = asyncio.get_running_loop().run_in_executor(workers, partitions.flush, event.topic, event.index)
        self._flushes.add(flushing)
        flushing.add_done_callback(self._flushes.discard)

    def _fail(self, text: str) -> None:
        """Note that the broker cannot go on, and why; the caller that waits for `failed` stops it."""
        if self._failure is not None and not self._failure.done():
            self._failure.set_result(NodeError(text))

    def _later(self, delay_ms: int, work: Callable[[], None]) -> None:
        """Do blocking work on a worker some time from now, unless the broker stops before. From any thread."""
        loop, workers = self._loop, self._workers

        def begin() -> None:
            if workers is not None and self._workers is workers:
                workers.submit(work)

        if loop is not None:
            loop.call_soon_threadsafe(lambda: self._clock.call_later(delay_ms / 1000, begin))

    async def _begin_cleaning(
        self, partitions: Partitions, moves: LogMoves, publisher: PartitionPublisher, workers: ThreadPoolExecutor
    ) -> None:
        if not self.config.log_cleaner_enable:
            return
        cleaner = self._cleaner = Cleaner(
            partitions,
            publisher.settings_of,
            lambda: self._live.current,
            self._later,
            self._clock.wall_ms,
            self._failure_reporter(),
            moves.is_moving,
            self._clock.sleep,
        )
        await asyncio.get_running_loop().run_in_executor(workers, cleaner.move_back_checkpoints)
        self._chores.append(asyncio.ensure_future(cleaner.run()))

    async def _take_down(self, *, clean: bool) -> None:
        """Stop every part that runs, in the order that loses nothing; a part that fails does not keep the others.

        What is closed behind one that failed is not called clean: the next start looks at it.
        """
        for chore in self._chores:
            chore.cancel()
        if self._retention is not None:
            self._retention.stop()
        for part in (self._cleaner, self._moves):
            if part is not None:
                clean &= await ended(asyncio.get_running_loop().run_in_executor(None, part.stop), part)
        clean &= await self._finish_requests()
        if self._publisher is not None:
            clean &= await ended(self._publisher.stop(), self._publisher)
        clean &= await ended(self._reports.stop(), self._reports)
        clean &= await ended(asyncio.gather(*self._flushes), "flushing of rolled logs")
        await self._close_logs(clean=clean)
        if self._workers is not None:
            self._workers.shutdown()
        if self._directories is not None:
            await ended(asyncio.to_thread(self._directories.release), self._directories)
        self._pipeline = self._publisher = self._partitions = self._cleaner = self._groups = None
        self._services = self._retention = self._moves = self._controller = self._channel = self._workers = (
            self._directories
        ) = None
        self._data_plane, self._chores = None, []

    async def _finish_requests(self) -> bool:
        if self._data_plane is None:
            return True
        self._data_plane.stop_accepting()
        fine = True
        if self._groups is not None:  # Members that wait for a rebalance are answered, and do not hold up the stop.
            fine = await ended(self._groups.close(), self._groups)
        if self._pipeline is not None:
            try:
                await asyncio.wait_for(self._pipeline.finish(), _FINISH_MS / 1000)
            except TimeoutError:
                log.warning("requests were still in work after %d ms", _FINISH_MS)
        # The pipeline goes on meanwhile: connections that still ask are answered until they are closed.
        shut_down = partial(self._data_plane.shut_down, grace_ms=_FINISH_MS)
        fine &= await ended(asyncio.get_running_loop().run_in_executor(None, shut_down), self._data_plane)
        syncs, appends = self._data_plane.flush_counts
        if syncs:
            log.info("shared syncs: %d covered %d appends", syncs, appends)
        if self._pipeline is not None:
            self._pipeline.stop()
        return fine

    async def _close_logs(self, *, clean: bool) -> None:
        """Close partitions, then the metadata log; a disk that fails now costs a recovery at the next start."""
        partitions, threads = self._partitions, self.config.num_recovery_threads_per_data_dir
        what = "closing of the logs, which the next start recovers"
        if partitions is not None:
            await ended(asyncio.to_thread(partitions.close, threads, self._broker_epoch, clean=clean), what)
        if self._controller is not None:
            await ended(self._controller.stop(), what)
