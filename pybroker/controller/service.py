"""The controller of one voter: opens and replays the log, and decides and commits while this voter is the leader.

Connects state machine, quorum and image. An event is passed to the runner, the records of the machine's decision to
the quorum's driver, and committed records to the loader. Machine and runner exist exactly while this voter leads;
committed records are loaded in either role. Must not know what events mean: `LocalChannel` builds them.

A failed write stops the controller, because only a restart shows how much of the write reached the disk. Callers then
get `NotControllerError`, and `on_failure` is called with the reason.
"""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from pybroker.controller.channel import QuorumState
from pybroker.controller.cluster.configs import equalize_min_isr
from pybroker.controller.cluster.machine import ClusterMachine, Event
from pybroker.controller.cluster.periodic import build_timers
from pybroker.controller.errors import ControllerError, NotControllerError
from pybroker.controller.quorum.batches import DIRECTORY_NAME, Batch
from pybroker.controller.quorum.driver import Driver, DriverEvents
from pybroker.controller.quorum.log.bootstrap import read_bootstrap
from pybroker.controller.quorum.log.first_records import enables_eligible_replicas, first_records, first_users
from pybroker.controller.quorum.log.foreign_log import check_whole, mark_of
from pybroker.controller.quorum.log.served_log import ServedLog
from pybroker.controller.quorum.replicas import Replicas
from pybroker.controller.quorum.snapshot.checkpointer import Checkpointer
from pybroker.controller.quorum.snapshot.snapshot_fetch import SnapshotSource, fetch_snapshot
from pybroker.controller.quorum.snapshot.snapshots import newest_snapshot, open_snapshot, read_snapshot
from pybroker.controller.quorum.transport.announced_replicas import AnnouncedReplica
from pybroker.controller.quorum.transport.frames import check_frame
from pybroker.controller.quorum.voter import Committed, SnapshotMark, Voter
from pybroker.controller.quorum.voters.voter_changes import VoterChanges
from pybroker.controller.quorum.voters.voter_maintenance import VoterMaintenance, supported_kraft_versions
from pybroker.controller.quorum.voters.voter_set import VoterEndpoint, VoterSet
from pybroker.machine.runner import ClosedError, Runner, UnwritableError
from pybroker.metadata.features import RECORD_VERSIONS
from pybroker.metadata.image import NO_LEADER, ScramImage
from pybroker.metadata.loader import Loader
from pybroker.metrics.durations import Durations
from pybroker.protocol.errors import ProtocolError
from pybroker.protocol.messages.records.feature_level import FeatureLevelRecord
from pybroker.protocol.messages.records.frame import decode_record, encode_record

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence
    from pathlib import Path

    from pybroker.controller.cluster.settings import ClusterSettings
    from pybroker.controller.quorum.settings import QuorumSettings
    from pybroker.controller.quorum.transport.peers import PeerAddress
    from pybroker.metadata.image import MetadataImage
    from pybroker.metadata.publishers import Publisher
    from pybroker.protocol.messages.raft_messages import RaftMessagesRequest
    from pybroker.protocol.schema import Message

log = logging.getLogger("pybroker.controller")

MAX_RECORDS_PER_BATCH = 10_000
"""Kafka's limit. A single event may exceed it, as its records are never split."""
_NOT_LEADING = "this node does not lead the metadata quorum"


class Controller:
    """One voter of the metadata quorum, and the cluster machine that this voter runs while it leads.

    Used from one event loop. It is opened first, then started; afterwards it follows the elections.
    """

    def __init__(
        self,
        settings: ClusterSettings,
        quorum: QuorumSettings,
        on_failure: Callable[[Exception], None] | None = None,
    ) -> None:
        """Create a controller that is not open. `on_failure` is called with the error that stops it."""
        self.settings = settings
        self._quorum = quorum
        self._on_failure = on_failure
        self._loader = Loader()
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="pybroker-controller")
        self._failure: Exception | None = None
        self.event_times = Durations()
        """Time from the submission of an event to the publication of its records."""
        self.commit_times = Durations()
        """Time from the proposal of a batch of records to its publication, after a majority of voters has it."""
        self._replicas = Replicas()
        self._callbacks: list[Callable[[bool], None]] = []
        self._on_reach: Callable[[int, bool], None] = lambda _voter, _is_reached: None
        self._closing: set[asyncio.Task[None]] = set()
        self._checkpointer = Checkpointer(quorum.directory / DIRECTORY_NAME, quorum.snapshots, _wall_clock_ms)
        self._checkpoint: asyncio.Task[None] | None = None
        self._fetched: tuple[SnapshotMark, MetadataImage] | None = None
        # The records that the node was formatted with; None for a node that formatted itself.
        self._formatted: list[Message] | None = None
        self._formatted_scram = ScramImage()
        self._voter: Voter
        self._driver: Driver
        self._maintenance: VoterMaintenance
        self.voters: VoterChanges
        """Changes of the voter set, which the leader decides on."""
        # Done when the first election is decided, or when the previous controller ends.
        self._completed: asyncio.Future[None]
        # Invariant: not None exactly while this voter leads and decides.
        self._runner: Runner[Event, Message] | None = None

    async def open(self, publishers: Iterable[Publisher] = ()) -> None:
        """Open or create the metadata log, and load the records that are known to be committed.

        `start` publishes them. Raises `OSError`, `ControllerError` and `MetadataError`; the controller then needs no
        `stop`.
        """
        self._loader = Loader(publishers)
        loop = asyncio.get_running_loop()
        try:
            self._voter = await loop.run_in_executor(self._disk, self._open_voter)
        except BaseException:
            self._disk.shutdown()
            raise
        self._completed = loop.create_future()
        reach = self._on_reach
        events = DriverEvents(self._apply, self._follow_election, self._fetch, self._restart, self._fail, reach)
        self._driver = Driver(self._voter, self._quorum, self._disk, events)
        query_versions = partial(supported_kraft_versions, security=self._quorum.security)
        self.voters = VoterChanges(self._quorum, self._driver, query_versions)
        self._maintenance = VoterMaintenance(self._quorum, self._driver, self.voters)

    async def start(self) -> None:
        """Take part in elections. The only voter of a quorum is the leader when this returns.

        Raises `OSError`, `ControllerError` and `MetadataError`.
        """
        is_alone = self._voter.is_alone
        if not is_alone:
            self._publish()  # the content of the snapshot; the first commit may take long
        self._driver.start()
        self._maintenance.start()
        if is_alone:
            await self._completed

    def on_leadership(self, callback: Callable[[bool], None]) -> None:
        """Register a callback: called with True when this voter begins to decide, and with False when it resigns."""
        self._callbacks.append(callback)

    def on_reach(self, callback: Callable[[int, bool], None]) -> None:
        """Register a callback, before `open`: called with a voter's id and True on connect, False on disconnect."""
        self._on_reach = callback

    def poll_voters(self) -> None:
        """Report closed connections of voters that the event loop has not processed yet."""
        self._driver.peers.poll()

    def step(self, request: RaftMessagesRequest) -> None:
        """Process the Raft messages of another replica.

        Raises `ForeignClusterError`, `UnknownVoterError`, and `QuorumError` for an invalid message.
        """
        key = check_frame(request, self._quorum, is_dynamic=self._voter.is_dynamic)
        self._replicas.note_voter(key, _wall_clock_ms())
        self.voters.note_directory(request.from_id, request.from_directory_id)
        if request.listeners and self._voter.is_dynamic:
            where = [VoterEndpoint(one.name, one.host, one.port) for one in request.listeners]
            seen_s = asyncio.get_running_loop().time()
            self._driver.greet(key, AnnouncedReplica(request.from_id, request.from_directory_id, where[0], seen_s))
        self._driver.take(key, request.messages)
        self._replicas.note_progress(self._voter.progress(), self._voter.last_index, _wall_clock_ms())

    async def stop(self) -> None:
        """Finish the work in progress, then close the log. Later calls raise `NotControllerError`."""
        await self._maintenance.stop()
        self._resign()
        if self._closing:
            # Work that waits for a lost majority ends with the driver.
            await asyncio.wait(self._closing, timeout=self._quorum.request_timeout_ms / 1000)
        await self._driver.stop()
        if self._checkpoint is not None:
            await self._checkpoint
        await asyncio.gather(*self._closing)
        try:
            await asyncio.get_running_loop().run_in_executor(self._disk, self._voter.log.close)
        finally:
            self._disk.shutdown()
            # The publishers reference this controller: until garbage collection they would keep files open.
            self._loader.stop()

    async def submit(self, event: Event) -> Any:
        """Return the machine's reply, once its records are committed and published.

        Raises `NotControllerError`, and any error that ended the commit.
        """
        with self.event_times.timed():
            runner = self._leading()
            try:
                return await runner.submit(event)
            except ClosedError:
                raise NotControllerError(_NOT_LEADING) from None

    @property
    def node_id(self) -> int:
        """Id of this node."""
        return self._quorum.node_id

    @property
    def image(self) -> MetadataImage:
        """The newest published image."""
        return self._loader.image

    @property
    def publish_failures(self) -> int:
        """Number of failures of a publisher to apply an image."""
        return self._loader.failures

    @property
    def scram(self) -> ScramImage:
        """The SCRAM users of the metadata, or those that this node was formatted with, before the first records.

        Otherwise voters that authenticate by SCRAM could not elect the leader that commits these users. The first
        records of the metadata contain both feature levels and users, but the leader epoch's record precedes them.
        """
        image = self._loader.image
        return image.scram if image.features.levels else self._formatted_scram

    @property
    def leader_id(self) -> int:
        """Node id of the quorum's leader as far as this voter knows, -1 for none."""
        leader = self._voter.leader
        return NO_LEADER if leader is None else leader

    @property
    def leader_endpoint(self) -> tuple[str, int] | None:
        """Host and port of the leader's controller listener, None if this node does not know it."""
        leader = self._voter.voters.find(self.leader_id)
        endpoint = None if leader is None else leader.endpoint()
        return None if endpoint is None else (endpoint.host, endpoint.port)

    @property
    def is_dynamic(self) -> bool:
        """Whether the log contains the voter set (kraft.version 1)."""
        return self._voter.is_dynamic

    @property
    def next_offset(self) -> int:
        """Offset of the next record of the metadata log."""
        return self._voter.next_offset

    @property
    def leader_epoch(self) -> int:
        """The newest leader epoch that this voter knows."""
        return self._voter.term

    @property
    def is_leader(self) -> bool:
        """Whether this voter leads and decides."""
        return self._runner is not None and self._failure is None

    @property
    def committed_offset(self) -> int:
        """Offset after the last record that this voter knows to be committed."""
        return self._driver.committed_offset

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return whole committed batches from the one that contains `offset` on: at least one, none at the end.

        Raises `ValueError` outside of the log, and `OSError`.
        """
        return self._voter.log.read_committed(offset, max_bytes, self._driver.committed_offset)

    @property
    def served(self) -> ServedLog:
        """The part of the log that other nodes may fetch."""
        return ServedLog(self._voter.log)

    async def wait_committed(self, beyond_offset: int) -> None:
        """Return when the high watermark exceeds `beyond_offset`, or when the controller stops."""
        await self._driver.wait_committed(beyond_offset)

    def note_observer(self, node_id: int, directory_id: bytes, offset: int, now_ms: int) -> None:
        """Record that an observer has fetched up to `offset`, for DescribeQuorum."""
        self._replicas.note_observer(node_id, directory_id, offset, self._voter.next_offset, now_ms)

    def quorum_state(self) -> QuorumState:
        """Return the state of the quorum; raises `NotControllerError` when this voter does not lead it."""
        self._leading()
        now_ms, end_offset = _wall_clock_ms(), self._voter.next_offset
        voter, progress = self._voter, self._voter.progress()
        return QuorumState(
            leader_id=self.leader_id,
            leader_epoch=self._voter.term,
            high_watermark=self._driver.committed_offset,
            log_end_offset=end_offset,
            voters=self._replicas.voters(voter.voters, voter.key, progress, end_offset, now_ms),
            observers=self._replicas.observers(voter.voters, self._driver.announced.all, progress, now_ms),
            endpoints={one.node_id: one.endpoints for one in voter.voters.voters},
        )

    def has_timer(self, key: Hashable) -> bool:
        """Return whether a timer with `key` is set; raises `NotControllerError` when this voter does not lead."""
        return self._leading().has_timer(key)

    def _leading(self) -> Runner[Event, Message]:
        if self._failure is not None:
            raise NotControllerError(f"the metadata log failed: {self._failure}")
        if self._runner is None:
            raise NotControllerError(_NOT_LEADING)
        return self._runner

    def _open_voter(self) -> Voter:
        """Open and load the log on the disk thread. No other thread uses this controller yet."""
        self._formatted = read_bootstrap(self._quorum.directory)
        self._formatted_scram = first_users(self._formatted)
        snapshot = newest_snapshot(self._quorum.directory / DIRECTORY_NAME)
        named = None if snapshot is None or snapshot.voters is None else VoterSet.from_record(snapshot.voters)
        mark = None if snapshot is None else mark_of(snapshot, named or self._quorum.configured, self._quorum.node_id)
        if snapshot is not None and mark is not None:
            self._checkpointer.found(snapshot)
            for batch in read_snapshot(snapshot.path):
                self._load(batch)
        return Voter.open(self._quorum, now_ms=_wall_clock_ms, replay=self._load, snapshot=mark, voters=named)

    async def _fetch(self, snapshot: SnapshotMark, address: PeerAddress) -> VoterSet | None:
        """Fetch a snapshot that the leader offers, and load its image; returns the voter set that it contains.

        Raises `OSError` and `ControllerError`.
        """
        loop = asyncio.get_running_loop()
        source = SnapshotSource(
            f"{address.host}:{address.port}",
            self._quorum.cluster_id,
            self._quorum.node_id,
            self._voter.term,
            self._quorum.request_timeout_ms,
            security=self._quorum.security,
        )
        elsewhere = partial(loop.run_in_executor, None)
        path = await fetch_snapshot(source, snapshot.id, self._quorum.directory / DIRECTORY_NAME, elsewhere)
        self._fetched = snapshot, await elsewhere(_image_in, path)
        named = (await elsewhere(open_snapshot, path)).voters
        return None if named is None else VoterSet.from_record(named)

    def _restart(self, snapshot: SnapshotMark) -> None:
        """Replace all loaded metadata by the fetched snapshot."""
        fetched, self._fetched = self._fetched, None
        if fetched is None or fetched[0] != snapshot:
            raise ControllerError(f"the snapshot up to offset {snapshot.id.end_offset} was not fetched")
        self._loader.replace(fetched[1])
        self._publish()

    def _publish(self) -> None:
        self._loader.note_kraft_version(int(self._voter.is_dynamic and bool(self._voter.voters.voters)))
        self._loader.publish()

    async def _append(self, records: Sequence[Message]) -> None:
        with self.commit_times.timed():
            await self._driver.propose([_encode(record) for record in records], records)

    def _apply(self, committed: Sequence[tuple[Committed, Sequence[Message] | None]]) -> None:
        """Load and publish the entries that the quorum has committed; `records` is None unless decided on this node."""
        for entry, records in committed:
            if records is None:
                self._load(entry.batch())
            else:
                self._loader.load(records, entry.last_offset, entry.term)
        self._publish()
        self._checkpointer.note(sum(len(entry.payload) for entry, _ in committed))
        if self._checkpointer.is_due:
            snapshot = self._take_snapshot(self._loader.image, committed[-1][0].raft_index, self._voter.voters)
            self._checkpoint = asyncio.get_running_loop().create_task(snapshot)

    async def _take_snapshot(self, image: MetadataImage, raft_index: int, voters: VoterSet | None = None) -> None:
        """Write the snapshot of an image, and remove older snapshots and log segments that no node needs."""
        loop = asyncio.get_running_loop()
        named = (voters or self._voter.voters).to_record() if self._voter.names_voters else None
        snapshot = await self._checkpointer.take(image, raft_index, partial(loop.run_in_executor, None), voters=named)
        if snapshot is None:
            return
        self._voter.set_snapshot(SnapshotMark(raft_index, snapshot))
        try:
            kept = await loop.run_in_executor(self._disk, self._checkpointer.clean, self._voter.log)
        except OSError as error:
            log.error("Failed to remove old snapshots of the metadata log: %s", error)
            return
        if kept is not None:
            self._voter.forget_before(kept.end_offset)

    def _follow_election(self, leads: bool) -> None:
        """Begin to decide if this voter leads, else resign."""
        if not leads:
            self._resign()
            return
        # The first leader ever finalizes the features. Later, a single node finalizes the features that are new to the
        # log; with several nodes one may run an older version, so levels rise on request only (docs/adr/0021).
        # The condition is on levels, not on an empty log, as a crash may have happened in between.
        levels, brokers = self._loader.image.features.levels, self._loader.image.cluster.brokers
        is_single = self._voter.is_alone and brokers.keys() <= {self._quorum.node_id}
        try:
            check_whole(self._loader)
            first = first_records(self._formatted, levels) if is_single or not levels else []
        except ControllerError as error:
            self._fail(error)
            return
        if not levels and enables_eligible_replicas(first):
            first += equalize_min_isr(self._loader.image, self.settings)
        if self._voter.is_dynamic and not self._voter.names_voters:
            # The checkpoint that a node was formatted with is not replicated: controllers that join later read the
            # voters from the log.
            self._driver.propose_voters(self._voter.voters).add_done_callback(_observe)
        if not first:
            self._lead()
            return
        if levels:
            added = [one for one in first if isinstance(one, FeatureLevelRecord)]
            log.info("finalizing %s", ", ".join(f"{one.name} at level {one.feature_level}" for one in added))
        self._driver.propose([_encode(record) for record in first], first).add_done_callback(self._finalized)

    def _finalized(self, committed: asyncio.Future[None]) -> None:
        """Begin to decide once the features are finalized, unless this voter has lost the leadership meanwhile."""
        if committed.exception() is None and self._driver.leads:
            self._lead()

    def _lead(self) -> None:
        """Begin to decide, starting from the newest image: this voter was elected."""
        image = self._loader.image
        cluster_id, topics = self._quorum.cluster_id, len(image.topics.by_id)
        words = "leading cluster %s in epoch %d: %d topics at offset %d"
        log.info(words, cluster_id, self._voter.term, topics, image.offset)
        machine = ClusterMachine(self.settings, image)
        runner = Runner(machine, self._append, now=_now_ms, max_records=MAX_RECORDS_PER_BATCH)
        now = _now_ms()
        runner.set_timers(build_timers(image, self.settings, now, epoch_ms=_wall_clock_ms() - now))
        self._runner = runner
        if not self._completed.done():
            self._completed.set_result(None)
        for callback in self._callbacks:
            callback(True)

    def _resign(self) -> None:
        """Stop deciding. Callers get `NotControllerError`, including those that wait for an uncommitted record."""
        runner, self._runner = self._runner, None
        if runner is None:
            return
        log.info("Resigned as active controller of cluster %s", self._quorum.cluster_id)
        closing = asyncio.get_running_loop().create_task(runner.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        for callback in self._callbacks:
            callback(False)

    def _load(self, batch: Batch) -> None:
        self._loader.load(_decode(batch), batch.last_offset, batch.epoch)

    def _fail(self, error: Exception) -> None:
        self._failure = error
        log.critical("The metadata log failed, which stops the controller: %s", error)
        if not self._completed.done():
            self._completed.set_exception(error)
            if not self._voter.is_alone:
                self._completed.exception()
        if self._on_failure is not None:
            self._on_failure(error)


def _observe(committed: asyncio.Future[None]) -> None:
    """Ignore the failure of a commit: if the leadership is lost, the next leader repeats the work."""
    if not committed.cancelled():
        committed.exception()


def _image_in(path: Path) -> MetadataImage:
    """Read a snapshot; raises `OSError` and `ControllerError`."""
    loader = Loader()
    for batch in read_snapshot(path):
        loader.load(_decode(batch), batch.last_offset, batch.epoch)
    return loader.publish()


def _decode(batch: Batch) -> list[Message]:
    try:
        return [decode_record(value) for value in batch.values]
    except ProtocolError as error:
        raise ControllerError(f"the metadata log cannot be read before offset {batch.last_offset}: {error}") from error


def _encode(record: Message) -> bytes:
    try:
        return encode_record(record, RECORD_VERSIONS[type(record).__name__])
    except (ProtocolError, OverflowError, ValueError) as error:
        raise UnwritableError(str(error)) from error


def _now_ms() -> int:
    return int(time.monotonic() * 1000)


def _wall_clock_ms() -> int:
    return int(time.time() * 1000)
