"""A minimal coordinator that sums numbers: its machine, codec, in-memory log and images of its topic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from pybroker.coordinator.runtime.commits import CommitWaits
from pybroker.coordinator.runtime.kind import CoordinatorKind, RuntimeSettings
from pybroker.coordinator.runtime.log import Chunk, Fault
from pybroker.coordinator.runtime.machine import Loaded
from pybroker.coordinator.runtime.service import CoordinatorRuntime
from pybroker.machine.machine import Delayed, Outcome, Timer
from pybroker.metadata.image import EMPTY_IMAGE, MetadataImage, PartitionImage, TopicImage, TopicsImage
from pybroker.storage.errors import BatchTooLargeError

TOPIC = "__counts"
RECORD = 16
"""Size of a record in the log, in bytes: an offset and a number of 8 bytes each."""


class Add(NamedTuple):
    """Adds a number. The reply is the new total."""

    number: int
    written: bool = True
    """Whether the decision emits a record with the number. Without it the decision has no records."""


class Total(NamedTuple):
    """Queries the total."""


class Wait(NamedTuple):
    """Waits and gets no reply."""


class AddAt(NamedTuple):
    """Sets a timer that adds the number at `deadline_ms`. The reply is None."""

    number: int
    deadline_ms: int


class CountingMachine:
    """The state machine: a sum of numbers."""

    def __init__(self) -> None:
        self.total = self.count = 0
        self.loaded = False
        self._before: tuple[int, int] | None = None

    def handle(self, event: Any, now: int) -> Outcome[int, Any]:
        match event:
            case Loaded():
                self.loaded = True
                return Outcome((), None)
            case Add(number, written):
                return Outcome((number,) if written else (), self.total + number)
            case AddAt(number, deadline_ms):
                return Outcome((), None, (Timer("add", deadline_ms, Add(number)),))
            case Total():
                return Outcome((), self.total)
            case Wait():
                return Outcome((), Delayed("waits"))
        raise ValueError(f"{event!r} is no event")

    def apply(self, record: int) -> None:
        self.total += record
        self.count += 1

    def load(self, records: Iterable[tuple[Any, Any]]) -> None:
        for _key, number in records:
            self.apply(number)

    def entries(self) -> int:
        return self.count

    def draft(self) -> CountingMachine:
        self._before = self.total, self.count
        return self

    def keep(self) -> CountingMachine:
        self._before = None
        return self

    def drop(self) -> None:
        assert self._before is not None
        self.total, self.count = self._before


class CountingCodec:
    """A `RecordCodec` with one record a batch. A number below zero is a fault when it is read."""

    def encode(self, records: Sequence[int], _now_ms: int, *, max_batch_bytes: int) -> bytes:
        if len(records) * RECORD > max_batch_bytes:
            raise BatchTooLargeError(f"{len(records)} records")
        return b"".join(bytes(8) + number.to_bytes(8, signed=True) for number in records)

    def decode(self, batches: bytes) -> Chunk:
        whole = len(batches) // RECORD * RECORD
        cut = [batches[at : at + RECORD] for at in range(0, whole, RECORD)]
        records = [(None, int.from_bytes(record[8:], signed=True)) for record in cut]
        next_offset = int.from_bytes(cut[-1][:8]) + 1 if cut else 0
        places = [(int.from_bytes(record[:8]), number) for record, (_, number) in zip(cut, records, strict=True)]
        faults = [Fault(offset, offset, number, "it is below zero") for offset, number in places if number < 0]
        records = [pair for pair in records if pair[1] >= 0]
        return Chunk(records, next_offset, whole, sum(number == 0 for _, number in records), faults)


class MemoryLog:
    """The in-memory log of a partition, with records of fixed size."""

    def __init__(self, *numbers: int) -> None:
        self.log_start_offset = 0
        self.written: list[bytes] = []
        self.appends = 0
        self.failure: Exception | None = None
        # The high watermark. None: it equals the log end offset.
        self.synced: int | None = None
        self.tickets: list[int] = []
        self.max_batch_bytes = 1 << 20
        self.before_read: Callable[[], object] = lambda: None
        for number in numbers:
            self.append(CountingCodec().encode([number], 0, max_batch_bytes=RECORD), 0)

    @property
    def numbers(self) -> list[int]:
        return [int.from_bytes(record[8:], signed=True) for record in self.written]

    @property
    def log_end_offset(self) -> int:
        return len(self.written)

    @property
    def high_watermark(self) -> int:
        return self.log_end_offset if self.synced is None else self.synced

    def append(self, batches: bytes, _now_ms: int) -> tuple[int, int]:
        if self.failure is not None:
            raise self.failure
        first = len(self.written)
        self.appends += 1
        for at in range(0, len(batches), RECORD):
            self.written.append(len(self.written).to_bytes(8) + batches[at + 8 : at + RECORD])
        return first, len(self.written) - 1

    def has_completed(self, end_offset: int) -> bool:
        return self.synced is None or self.synced >= end_offset

    def complete(self, _end_offset: int, ticket: int) -> None:
        self.tickets.append(ticket)

    def read(self, offset: int, max_bytes: int) -> bytes:
        self.before_read()
        return b"".join(self.written[offset : offset + max(max_bytes // RECORD, 1)])


def image(*leaders: int, epoch: int = 0) -> MetadataImage:
    """Return an image with the topic, whose partitions have these leaders, or without the topic if there are none."""
    partitions = {
        index: PartitionImage(leader=leader, leader_epoch=epoch, partition_epoch=0, replicas=(leader,), isr=(leader,))
        for index, leader in enumerate(leaders)
    }
    if not partitions:
        return EMPTY_IMAGE
    topic = TopicImage(name=TOPIC, topic_id=b"c" * 16, partitions=partitions)
    return msgspec.structs.replace(
        EMPTY_IMAGE, topics=TopicsImage(by_name={topic.name: topic}, by_id={topic.topic_id: topic})
    )


def kind(appended: Callable[[Sequence[int]], None] = lambda _records: None) -> CoordinatorKind[int, CountingMachine]:
    """Return the kind of this coordinator. Its key is the partition index."""
    return CoordinatorKind(
        topic=TOPIC,
        entries="counts",
        partition_of=lambda key, partitions: int(key) % partitions,
        build_machine=CountingMachine,
        codec=CountingCodec(),
        appended=appended,
        fault_effect="{} is not counted".format,
    )


class Counting:
    """The coordinators of node 1 over in-memory logs. A partition missing in `logs` has no log."""

    def __init__(
        self, partitions: int = 1, logs: dict[int, MemoryLog] | None = None, commit_timeout_ms: int = 5000
    ) -> None:
        self.logs = {index: MemoryLog() for index in range(partitions)} if logs is None else logs
        self.commits = CommitWaits()
        self.appended: list[list[int]] = []
        self.runtime: CoordinatorRuntime[int, CountingMachine] = CoordinatorRuntime(
            kind(lambda records: self.appended.append(list(records))),
            RuntimeSettings(
                node_id=1, partitions=partitions, commit_timeout_ms=commit_timeout_ms, load_bytes=4 * RECORD
            ),
            open_log=lambda index: self.logs.get(index),
            commits=self.commits,
        )

    async def elected(self, *leaders: int, epoch: int = 0) -> None:
        """Follow an image, and wait until the partitions that this node leads are loaded."""
        self.runtime.follow(image(*leaders, epoch=epoch))
        await self.runtime.loaded()
