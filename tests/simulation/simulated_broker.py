"""The data plane of one simulated process: its partitions, whom they follow, who waits for an answer.

Owns the meeting of an image with the real partitions, roles and fetchers. Must not know the quorum. What is planted as
a fault comes in by `Faults`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pybroker._native import (
    LogConfig,
    LogDirectoryFailed,
    LogOpening,
    Partition,
    PartitionEntry,
    RecoveryProgress,
    ReplicaCaughtUp,
    Role,
    SimulatedDataPlane,
    TopicEntry,
    TopicTable,
    open_logs,
    parse_metadata_batches,
)
from pybroker.metadata.image import TOPIC_RESOURCE, MetadataImage, PartitionImage
from pybroker.replica.roles import Follower, Leader, plan_registered, plan_role
from pybroker.storage.errors import NotLeaderError
from tests.simulation.simulated_loop import SimulatedLoop

CONFIG = LogConfig(
    segment_bytes=1 << 11,
    segment_ms=10**9,
    segment_jitter_ms=0,
    segment_index_bytes=240,
    index_interval_bytes=256,
    max_message_bytes=1 << 20,
    compression_type="producer",
    compression_level=None,
    timestamp_type="CreateTime",
    timestamp_before_max_ms=2**62,
    timestamp_after_max_ms=2**62,
    require_keys=False,
    preallocate=False,
    delete_retention_ms=10**9,
    flush_messages=2**62,
    flush_ms=2**62,
    flush_group=False,
    producer_id_expiration_ms=10**9,
    max_decompressed_bytes=1 << 20,
    file_delete_delay_ms=0,
)
FETCH_WAIT_MS = 250
PRODUCE_WAIT_S = 1.0

Key = tuple[bytes, int]


class Faults(NamedTuple):
    """What is planted."""

    truncates_by_watermark: bool = False
    forgets_epochs: bool = False
    """A follower does not say of which epoch its last record is."""
    acknowledges_early: bool = False
    forgets_votes: bool = False
    fences_nobody: bool = False
    """Neither leaders nor the controller compare epochs."""
    marks_before_prepared: bool = False
    """Markers are written before it is on disk that the transaction ends."""
    gives_epochs_again: bool = False
    """A producer's next instance gets the epoch that the last one has."""
    keeps_epochs: bool = False
    """The end of a transaction does not raise the epoch."""
    verifies_nothing: bool = False
    """A batch begins a transaction in a partition that its coordinator knows nothing of."""
    forgets_offsets: bool = False
    """The offsets of a group get no marker."""


NO_FAULTS = Faults()


class Checkpoint(NamedTuple):
    """What is known of a log when it is opened."""

    recovery_point: int = 0
    high_watermark: int = 0


class Surroundings(NamedTuple):
    """What a broker reports to."""

    began_to_lead: Callable[[Key, Partition], None]
    """This broker leads a partition from now on, or goes on to."""
    caught_up: Callable[[ReplicaCaughtUp], None]
    disk_failed: Callable[[str], None]
    poked: Callable[[], None]
    """Something may be committed, or answered."""
    verify: Callable[[tuple[str, int, int], int, Sequence[tuple[str, int]]], Awaitable[Any]]
    """Asks the coordinator of a transaction: producer, version of the Produce, partitions."""


class SimulatedBroker:
    """See the module."""

    def __init__(
        self,
        number: int,
        loop: SimulatedLoop,
        directory: Path,
        checkpoints: dict[Key, Checkpoint],
        faults: Faults,
        around: Surroundings,
    ) -> None:
        self.number, self._loop, self._faults, self._around = number, loop, faults, around
        self._directory, self._checkpoints = directory, checkpoints
        self.plane = SimulatedDataPlane(
            node_id=number,
            max_wait_ms=FETCH_WAIT_MS,
            max_bytes=1 << 10,
            response_max_bytes=1 << 12,
            first_backoff_ms=10,
            backoff_ms=200,
            session_slots=8,
        )
        self.partitions: dict[Key, Partition] = {}
        # The partition epoch that the role of each is of.
        self._roles: dict[Key, tuple[int, int]] = {}
        self._table = TopicTable(brokers={})
        self._waiting: dict[int, asyncio.Future[bytes | None]] = {}
        self.fetch_due = {leader: asyncio.Event() for leader in range(3)}

    def let_go(self) -> None:
        """Forget all that holds files."""
        self.partitions.clear()
        del self.plane, self._table

    def touch(self) -> None:
        """Let the time of the data plane be that of the loop."""
        self.plane.set_time(self._loop.now_ms())

    def follow(self, image: MetadataImage) -> None:
        """Open what is here, give roles, and show the topics."""
        self.touch()
        entries = []
        for topic in image.topics.by_id.values():
            min_isr = int(image.configs.of(TOPIC_RESOURCE, topic.name).get("min.insync.replicas", "1"))
            shown = []
            for index, partition in topic.partitions.items():
                key = topic.topic_id, index
                if self.number in partition.replicas:
                    self._open(topic.name, key)
                if key in self.partitions and not self._become(key, partition, min_isr):
                    return
                shown.append(
                    PartitionEntry(
                        index=index,
                        partition=self.partitions.get(key),
                        offline=False,
                        leader=partition.leader,
                        leader_epoch=partition.leader_epoch,
                    )
                )
            entries.append(TopicEntry(name=topic.name, topic_id=topic.topic_id, internal=False, partitions=shown))
        self._table = self._table.with_eligible(plan_registered(image.cluster)).replace(upsert=entries, remove=[])
        self.plane.publish(self._table)
        self.poke()

    def _open(self, topic: str, key: Key) -> None:
        if key in self.partitions:
            return
        known = self._checkpoints.get(key, Checkpoint())
        opening = LogOpening(
            directory=str(self._directory),
            topic=topic,
            index=key[1],
            topic_id=key[0],
            claimed=False,
            config=CONFIG,
            clean_shutdown=False,
            recovery_point=known.recovery_point,
            log_start_offset=0,
            high_watermark=known.high_watermark,
            progress=RecoveryProgress(),
        )
        (opened,) = open_logs([opening], now_ms=self._loop.now_ms())
        if isinstance(opened, OSError):
            self._around.disk_failed(str(opened))
            return
        if isinstance(opened, Exception):
            raise opened
        self.partitions[key] = opened

    def _become(self, key: Key, image: PartitionImage, min_isr: int) -> bool:
        """Give a partition its role; False when the disk has failed meanwhile."""
        planned, partition = plan_role(image, self.number), self.partitions[key]
        wanted = (image.leader_epoch, image.partition_epoch)
        if self._roles.get(key) == wanted:
            return True
        try:
            if isinstance(planned, Leader):
                role = Role.leader(
                    planned.epoch,
                    partition_epoch=planned.partition_epoch,
                    followers=list(planned.followers),
                    min_insync_replicas=min_isr,
                )
            elif isinstance(planned, Follower):
                if self._faults.truncates_by_watermark and partition.leader_epoch != planned.epoch:
                    self.plane.cut(partition, partition.high_watermark)
                role = Role.follower(planned.epoch, leader=planned.leader)
            else:
                role = Role.none(planned.epoch)
            self.plane.become_role(partition, role)
        except OSError as error:
            self._around.disk_failed(str(error))
            return False
        self._roles[key] = wanted
        if isinstance(planned, Leader):
            self._around.began_to_lead(key, partition)
        elif isinstance(planned, Follower):
            self.fetch_due[planned.leader].set()
        return True

    # ---------------------------------------------------------------------------------------------------- requests

    async def serve(self, frame: bytes, within_s: float) -> bytes | None:
        """Work on a request of the hot path; None where the connection is closed."""
        self.touch()
        number, response = self.plane.serve(frame)
        if number is None:
            self.poke()
            return response
        waiting: asyncio.Future[bytes | None] = self._loop.create_future()
        self._waiting[number] = waiting
        self._query_coordinators()
        self.poke()
        timer = self._loop.call_later(within_s, self._expire, number)
        try:
            return await waiting
        finally:
            timer.cancel()

    def _query_coordinators(self) -> None:
        for question in self.plane.questions():
            asyncio.ensure_future(self._verify(*question))  # noqa: RUF006 - the life keeps its tasks

    async def _verify(self, number: int, producer: Any, version: int, partitions: Any) -> None:
        responses = await self._around.verify(producer, version, partitions)
        self.touch()
        still_waits, response = self.plane.verified(number, responses)
        waiting = self._waiting.get(number)
        if still_waits is None and waiting is not None:
            del self._waiting[number]
            if not waiting.done():
                waiting.set_result(response)
        self._query_coordinators()
        self.poke()

    def poke(self) -> None:
        """Answer who is satisfied, and report what has happened."""
        for number, response in self.plane.responses():
            waiting = self._waiting.pop(number, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(response)
        for event in self.plane.drain():
            if isinstance(event, ReplicaCaughtUp):
                self._around.caught_up(event)
            elif isinstance(event, LogDirectoryFailed):
                self._around.disk_failed(event.error)
        self._around.poked()

    def _expire(self, number: int) -> None:
        self.touch()
        response = self.plane.expire(number)
        waiting = self._waiting.pop(number, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(response)

    # ------------------------------------------------------------------------------------------------------- disks

    def flush(self, key: Key) -> None:
        """Sync a log, and note how far it is known to be whole and committed."""
        partition = self.partitions[key]
        try:
            recovery_point = partition.flush()
        except OSError as error:
            self._around.disk_failed(str(error))
            return
        self._checkpoints[key] = Checkpoint(recovery_point, partition.high_watermark)

    def close(self) -> bool:
        """Close all logs, as a stop in order does; whether their disk has all."""
        try:
            for key, partition in self.partitions.items():
                partition.close()
                self._checkpoints[key] = Checkpoint(partition.log_end_offset, partition.high_watermark)
        except OSError:
            return False
        return True

    def raw(self, key: Key) -> bytes:
        """What a log holds, batch after batch."""
        partition, found, offset = self.partitions[key], bytearray(), 0
        while offset < partition.log_end_offset:
            data = self.plane.read(partition, offset, 1 << 20)
            batches, size = parse_metadata_batches(data)
            found += data[:size]
            offset = batches[-1][1] + 1
        return bytes(found)

    def records(self, key: Key, offset: int = 0) -> list[tuple[int, int, bytes]]:
        """Return offset, leader epoch and value of what a log holds from an offset on."""
        partition, found = self.partitions[key], []
        while offset < partition.log_end_offset:
            batches, size = parse_metadata_batches(self.plane.read(partition, offset, 1 << 20))
            assert size > 0, f"the log of broker {self.number} cannot be read at offset {offset}"
            for base_offset, last_offset, epoch, _, _, values in batches:
                found += [(base_offset + number, epoch, value) for number, value in enumerate(values)]
                offset = last_offset + 1
        return found


class SimulatedLog:
    """A `PartitionLog` of the coordinator runtime."""

    def __init__(self, broker: SimulatedBroker, partition: Partition, completed: Callable[[int], None]) -> None:
        self._broker, self._partition, self._completed = broker, partition, completed
        self._epoch = partition.leader_epoch
        self._tickets: list[tuple[int, int]] = []
        self.max_batch_bytes = 1 << 20

    @property
    def high_watermark(self) -> int:
        return self._partition.high_watermark

    @property
    def log_start_offset(self) -> int:
        return self._partition.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self._partition.log_end_offset

    def append(self, batches: bytes, _now_ms: int) -> tuple[int, int]:
        self._begin()
        appended = self._broker.plane.append(self._partition, batches)
        self._broker.poke()
        return appended

    def append_transactional(self, batches: bytes, _now_ms: int, guard: int | None) -> tuple[int, int]:
        self._begin()
        appended = self._broker.plane.append_transactional(self._partition, batches, guard)
        self._broker.poke()
        return appended

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
        now_ms: int,
    ) -> tuple[int, int]:
        self._begin()
        marker = (producer_id, producer_epoch, commit, coordinator_epoch, transaction_version)
        appended = self._broker.plane.append_marker(self._partition, marker)
        self._broker.poke()
        return appended

    def begin_verification(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        bumps_epoch: bool,
        now_ms: int,
    ) -> int:
        self._begin()
        return self._broker.plane.begin_verification(
            self._partition, producer_id, producer_epoch, bumps_epoch=bumps_epoch
        )

    def _begin(self) -> None:
        """Look whether this is still the coordinator's log; raises `NotLeaderError`."""
        if self._partition.leader_epoch != self._epoch:
            raise NotLeaderError("the leader epoch is over")
        self._broker.touch()

    def has_completed(self, end_offset: int) -> bool:
        return self._broker.plane.has_completed(self._partition, self._epoch, end_offset)

    def complete(self, end_offset: int, ticket: int) -> None:
        self._tickets.append((end_offset, ticket))

    def read(self, offset: int, max_bytes: int) -> bytes:
        return self._broker.plane.read(self._partition, offset, max_bytes)

    def look(self) -> None:
        """Report what is settled, and what will not be."""
        is_over = self._partition.role != "leader" or self._partition.leader_epoch != self._epoch
        ready = [one for one in self._tickets if is_over or self.has_completed(one[0])]
        self._tickets = [one for one in self._tickets if one not in ready]
        for _, ticket in ready:
            self._completed(ticket)


def every(broker: SimulatedBroker, keys: Sequence[Key]) -> list[Any]:
    """The partitions that are open of these."""
    return [broker.partitions[key] for key in keys if key in broker.partitions]
