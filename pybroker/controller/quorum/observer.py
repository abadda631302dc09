"""The metadata of a node that does not vote: it follows the committed log of the active controller (KIP-595).

Owns the search for the leader, and the fetches: Fetch with a long wait, and FetchSnapshot if the log starts later.
Owns the processing of fetched batches: validate, append to the copy on disk, load, publish. Must not know records.

The observer publishes nothing before a leader has confirmed that the copy belongs to its log, and everything that the
leader had committed has been fetched. Until then metadata is loaded aside, and the image is unchanged. The same applies
when the copy proves to belong to another log. So a broker never acts on outdated metadata.

Responses are not trusted: an invalid response changes nothing, and another node is tried.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from pybroker.client.errors import ClientError
from pybroker.client.network.connection import Connection
from pybroker.client.settings import ConnectionSettings
from pybroker.controller.errors import ControllerError, MetadataLogError
from pybroker.controller.quorum.batches import TOPIC_NAME
from pybroker.controller.quorum.fetched import Position, read_response
from pybroker.controller.quorum.log.metadata_copy import MetadataCopy
from pybroker.controller.quorum.snapshot.checkpointer import Checkpointer
from pybroker.controller.quorum.snapshot.snapshot_fetch import SnapshotSource, code_name, fetch_snapshot
from pybroker.controller.quorum.snapshot.snapshot_header import UNKNOWN
from pybroker.controller.quorum.snapshot.snapshot_policy import SnapshotPolicy
from pybroker.controller.quorum.snapshot.snapshots import open_snapshot
from pybroker.machine.clock import SYSTEM_CLOCK
from pybroker.metadata.errors import MetadataError
from pybroker.metadata.loader import Loader
from pybroker.protocol.errors import ErrorCode, ProtocolError
from pybroker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ReplicaState,
)
from pybroker.protocol.messages.records.frame import decode_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from pybroker.client.security.renewed import RenewedSecurity
    from pybroker.controller.quorum.fetched import Fetched, FetchedBatch, Leader
    from pybroker.controller.quorum.log.metadata_copy import Restored
    from pybroker.controller.quorum.snapshot.snapshots import SnapshotId
    from pybroker.machine.clock import Clock
    from pybroker.metadata.image import MetadataImage
    from pybroker.metadata.publishers import Publisher

log = logging.getLogger("pybroker.controller")

METADATA_TOPIC_ID = (1).to_bytes(16)
"""Kafka's `Uuid.METADATA_TOPIC_ID`."""
FIRST_VERSION_WITH_ENDPOINTS = 16
MAX_WAIT_MS = 500
"""The maximum wait of a fetch, as for Kafka's followers of the metadata log."""
_LONGEST_BACKOFF_S = 1.0
_REFUSALS = 10
_TRY_ANOTHER = frozenset(
    {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH}
)
_FAULTS = (ClientError, ControllerError, MetadataError, ProtocolError, OSError, ValueError)
"""Errors that end a connection to a node, but not the observer."""


class ObserverSettings(NamedTuple):
    """The node that follows, the directory of its copy, and the nodes to fetch from."""

    directory: Path
    """Parent of the copy's directory, `__cluster_metadata-0`."""
    cluster_id: str
    node_id: int
    directory_id: bytes
    voters: tuple[tuple[int, str, int], ...]
    """Node id, host and port of the configured voters; may be empty."""
    bootstrap_servers: tuple[tuple[str, int], ...]
    """Host and port of nodes that know the leader, if no voters are configured."""
    segment_bytes: int
    segment_ms: int
    request_timeout_ms: int
    retry_backoff_ms: int
    fetch_max_bytes: int
    snapshot_piece_bytes: int
    snapshots: SnapshotPolicy
    security: RenewedSecurity | None = None
    """Security of connections to controllers, None for plaintext."""


class Observer:
    """Follows the metadata log. Used from one event loop; opened first, then started."""

    def __init__(
        self,
        settings: ObserverSettings,
        on_failure: Callable[[Exception], None] | None = None,
        *,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """`on_failure` is called with the disk error that stops the observer."""
        self._settings = settings
        self._on_failure = on_failure
        self._clock = clock
        self._copy = MetadataCopy(settings.directory, settings.segment_bytes, settings.segment_ms, clock.wall_ms)
        self._checkpointer = Checkpointer(self._copy.directory, settings.snapshots, clock.wall_ms)
        self._connecting = ConnectionSettings(
            {
                "client.id": f"observer-{settings.node_id}",
                "request.timeout.ms": str(settings.request_timeout_ms + MAX_WAIT_MS),
                "socket.connection.setup.timeout.ms": str(settings.request_timeout_ms),
            }
        )
        self._loader = Loader()
        # Loads batches that are not confirmed yet; None while batches are loaded into `_loader`.
        self._aside: Loader | None = None
        self._position = Position(0, -1)
        self._raft_index = 0
        # Number of consecutive fetches with records that cannot follow the loaded ones.
        self._refused = 0
        self.leader_id = -1
        """Node id of the quorum's leader as far as this node knows it, -1 for none."""
        self.leader_epoch = -1
        """The newest known leader epoch."""
        self.leader_endpoint: tuple[str, int] | None = None
        """The leader's controller endpoint, if it is known."""
        # The server to try next, once, before the round-robin continues.
        self._hint: tuple[str, int] | None = None
        self._turn = 0
        # Why no leader can be followed; the beginning and the end of an outage are logged.
        self._outage: str | None = None
        self._running: asyncio.Task[None] | None = None
        self._snapshot: asyncio.Task[None] | None = None
        self._advance: asyncio.Future[None] | None = None

    @property
    def image(self) -> MetadataImage:
        """The newest published image."""
        return self._loader.image

    @property
    def publish_failures(self) -> int:
        """Number of failures of a publisher to apply an image."""
        return self._loader.failures

    @property
    def is_leader(self) -> bool:
        """Whether this node is the active controller: it never is."""
        return False

    async def open(self, publishers: Iterable[Publisher] = ()) -> None:
        """Open the copy on disk; raises `OSError`. Publishes nothing before a leader has confirmed the copy."""
        self._loader = Loader(publishers)
        self._restored(await asyncio.to_thread(self._copy.restore))

    def start(self) -> None:
        """Start following."""
        self._running = asyncio.get_running_loop().create_task(self._run())

    async def wait_for(self, offset: int) -> None:
        """Return when the image includes the record at an offset, or when the observer stops."""
        while self.image.offset < offset and self._running is not None:
            if self._advance is None:
                self._advance = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._advance)

    async def stop(self) -> None:
        """Stop following, and close the copy."""
        running, self._running = self._running, None
        for task in (running, self._snapshot):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        self._wake()
        self._loader.stop()
        await asyncio.to_thread(self._copy.close)

    def _restored(self, restored: Restored) -> None:
        self._aside = restored.loader
        self._position = Position(restored.end_offset, restored.epoch)
        self._raft_index = restored.raft_index

    async def _run(self) -> None:
        tries = 0
        while True:
            server = self._next_server()
            try:
                if self._settings.security is not None:
                    self._settings.security.secure(self._connecting)
                connection = await Connection.open(server, self._connecting)
                try:
                    tries = 0 if await self._follow(connection, server) else tries + 1
                finally:
                    await connection.close()
            except _FAULTS as error:
                if isinstance(error, OSError) and not isinstance(error, ClientError):
                    self._fail(error)
                    return
                tries += 1
                self._note_outage(str(error))
            backoff_s = self._settings.retry_backoff_ms / 1000 * 2 ** min(tries, 10)
            await asyncio.sleep(min(backoff_s, _LONGEST_BACKOFF_S))

    def _next_server(self) -> str:
        """Return the server to try: the leader once, if it is known, and then the others round-robin."""
        endpoint, self._hint = self._hint, None
        if endpoint is None:
            known = [(host, port) for _, host, port in self._settings.voters] + [*self._settings.bootstrap_servers]
            # The known leader has failed. An epoch that one node reported must not exclude other nodes. A leader whose
            # epoch is older than the loaded records is rejected all the same.
            self.leader_epoch = self._position.epoch
            endpoint = known[self._turn % len(known)]
            self._turn += 1
        host, port = endpoint
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def _follow(self, connection: Connection, server: str) -> bool:
        """Fetch from one node while it leads; return whether it was the leader for some time."""
        has_led, was_fenced = False, False
        while True:
            response = await connection.query(self._request(), FetchResponse)
            fetched = read_response(response, self._position)
            epoch_before = self.leader_epoch
            self._note_leader(fetched.leader)
            if fetched.error:
                if fetched.error not in _TRY_ANOTHER:
                    raise ControllerError(f"{server} rejects the fetch with {code_name(fetched.error)}")
                if (
                    fetched.error == ErrorCode.FENCED_LEADER_EPOCH
                    and self.leader_epoch > epoch_before
                    and not was_fenced
                ):
                    was_fenced = True  # The leader itself may report it.
                    continue
                self._note_outage(f"{server} does not lead the quorum")
                return has_led
            if fetched.leader is None or fetched.leader.epoch < self.leader_epoch:
                raise MetadataLogError(f"{server} responds as the leader of an epoch before {self.leader_epoch}")
            await self._take(fetched, server)
            has_led, was_fenced = True, False
            self._hint = self.leader_endpoint = _endpoint(server)
            if self._aside is None and self._outage is not None:
                self._outage = None
                log.info("Fetching the metadata log again: node %d leads the quorum", self.leader_id)

    async def _take(self, fetched: Fetched, server: str) -> None:
        if fetched.snapshot is not None:
            await self._fetch_snapshot(fetched.snapshot, server)
        elif fetched.diverging is not None:
            await self._begin_anew(
                f"offset {self._position.end_offset} after epoch {self._position.epoch} is not in the log of {server}"
            )
        elif fetched.batches:
            await self._load(fetched)
        if self._aside is not None and self._position.end_offset >= fetched.high_watermark >= 0:
            self._loader.replace(self._aside.publish())
            self._aside = None
            self._publish()
            log.info(
                "node %d leads the quorum: fetched the metadata up to offset %d", self.leader_id, self.image.offset
            )

    async def _load(self, fetched: Fetched) -> None:
        """Append batches to the copy, load them, and publish the image if it is confirmed."""
        loader = self._aside or self._loader
        decoded = [(batch, list(map(decode_record, batch.values))) for batch in fetched.batches]
        try:
            for batch, records in decoded:
                loader.load(records, batch.last_offset, batch.epoch)
                if batch.kraft_version is not None:
                    loader.note_kraft_version(batch.kraft_version)
                await asyncio.sleep(0)  # lets other tasks run between two batches
        except MetadataError as error:
            await self._refuse_records(str(error))
            raise
        self._refused = 0
        await asyncio.to_thread(self._copy.append, fetched.raw)
        for batch in fetched.batches:
            self._reach(batch)
        if self._aside is None:
            self._publish()
        self._checkpointer.note(len(fetched.raw))
        if self._aside is None and self._checkpointer.is_due and (self._snapshot is None or self._snapshot.done()):
            self._snapshot = asyncio.get_running_loop().create_task(self._take_snapshot(self.image, self._raft_index))

    def _reach(self, batch: FetchedBatch) -> None:
        self._position = Position(batch.last_offset + 1, batch.epoch)
        self._raft_index += self._raft_index != UNKNOWN

    async def _fetch_snapshot(self, snapshot: SnapshotId, server: str) -> None:
        settings = self._settings
        source = SnapshotSource(
            server,
            settings.cluster_id,
            settings.node_id,
            self.leader_epoch,
            settings.request_timeout_ms,
            settings.directory_id,
            settings.snapshot_piece_bytes,
            settings.security,
        )
        log.info("fetching the snapshot %s of the metadata log from %s", snapshot.file_name, server)
        path = await fetch_snapshot(source, snapshot, self._copy.directory, asyncio.to_thread)
        image = await asyncio.to_thread(self._copy.install, path)
        aside = Loader()
        aside.replace(image)
        self._aside = aside
        self._position = Position(snapshot.end_offset, snapshot.epoch)
        self._raft_index = (await asyncio.to_thread(open_snapshot, path)).raft_index

    async def _refuse_records(self, reason: str) -> None:
        """Drop records that cannot follow the loaded ones; if this repeats, the copy is wrong and set aside."""
        self._refused += 1
        if self._refused > _REFUSALS:
            self._refused = 0
            await self._begin_anew(reason)
        else:
            await self._gather()

    async def _begin_anew(self, reason: str) -> None:
        """Set the copy aside, and fetch all metadata again; the image is unchanged until that is complete."""
        await self._end_snapshot()
        await asyncio.to_thread(self._copy.set_aside, reason)
        await self._gather()

    async def _gather(self) -> None:
        """Reload the copy, and load metadata aside until it is confirmed."""
        if self._aside is None:
            # Loaded and unpublished records may be half of a batch.
            self._loader.replace(self._loader.image)
        self._restored(await asyncio.to_thread(self._copy.restore))

    async def _take_snapshot(self, image: MetadataImage, raft_index: int) -> None:
        if await self._checkpointer.take(image, raft_index, asyncio.to_thread) is None:
            return
        try:
            await asyncio.to_thread(self._checkpointer.clean, self._copy)
        except OSError as error:
            log.error("Failed to remove old snapshots of the metadata log: %s", error)

    async def _end_snapshot(self) -> None:
        task, self._snapshot = self._snapshot, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def _request(self) -> FetchRequest:
        settings = self._settings
        partition = FetchPartition(
            current_leader_epoch=self.leader_epoch,
            fetch_offset=self._position.end_offset,
            last_fetched_epoch=self._position.epoch,
            partition_max_bytes=settings.fetch_max_bytes,
            replica_directory_id=settings.directory_id,
        )
        return FetchRequest(
            cluster_id=settings.cluster_id,
            replica_state=ReplicaState(replica_id=settings.node_id),
            max_wait_ms=MAX_WAIT_MS,
            max_bytes=settings.fetch_max_bytes,
            topics=[FetchTopic(topic=TOPIC_NAME, topic_id=METADATA_TOPIC_ID, partitions=[partition])],
        )

    def _note_leader(self, leader: Leader | None) -> None:
        if leader is None or leader.epoch < self.leader_epoch:
            return
        if leader.node_id < 0 and leader.epoch == self.leader_epoch:
            return
        self.leader_id, self.leader_epoch = leader.node_id, leader.epoch
        configured = [(host, port) for node_id, host, port in self._settings.voters if node_id == leader.node_id]
        self._hint = self.leader_endpoint = leader.endpoint or (configured[0] if configured else None)

    def _publish(self) -> None:
        self._loader.publish()
        self._wake()

    def _wake(self) -> None:
        if self._advance is not None:
            self._advance.set_result(None)
            self._advance = None

    def _note_outage(self, reason: str) -> None:
        if self._outage is None:
            log.warning("Failed to fetch the metadata log: %s; retrying", reason)
        self._outage = reason

    def _fail(self, error: OSError) -> None:
        log.critical("Failed to write the copy of the metadata log: %s", error)
        if self._on_failure is not None:
            self._on_failure(error)


def _endpoint(server: str) -> tuple[str, int]:
    host, _, port = server.rpartition(":")
    return host.strip("[]"), int(port)
