"""The tally of a piece of one partition: its producers' sequences, latencies, and first errors.

Owns the vectorised pass over an Arrow batch, and the merging of pieces in offset order. A piece is small whatever
its length: 16 bytes for each gap of a producer's sequences, and a few thousand latency slots. Must not know Spark.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pybroker_spark.audit import intervals
from pybroker_spark.audit.latencies import Latencies
from pybroker_spark.audit.sequences import Sequences
from pybroker_spark.audit.stamps import parse_stamps

SAMPLES = 10
"""Maximum number of duplicates that are listed with their offset."""


@dataclass(frozen=True, slots=True, order=True)
class Duplicate:
    """A duplicated sequence, with the offset of the second occurrence, or of the piece that contains it."""

    offset: int
    producer: int
    sequence: int


@dataclass(slots=True)
class Tally:
    """The tally of a piece of one partition."""

    first_offset: int = -1
    last_offset: int = -1
    records: int = 0
    unstamped: int = 0
    by_producer: dict[int, Sequences] = field(default_factory=dict)
    latencies: Latencies = field(default_factory=Latencies)
    append_times: int = 0
    """Records with LogAppendTime timestamps; others have CreateTime."""
    duplicates: list[Duplicate] = field(default_factory=list)
    """The first duplicates."""

    def add(self, values: pa.Array, offsets: NDArray[np.int64], times_us: NDArray[np.int64], append_times: int) -> None:
        """Count records, which follow the previous ones in offset order."""
        if self.first_offset < 0:
            self.first_offset = int(offsets[0])
        self.last_offset = int(offsets[-1])
        self.records += len(offsets)
        self.append_times += append_times
        stamps = parse_stamps(values)
        if stamps.stamped is not None:
            offsets, times_us = offsets[stamps.stamped], times_us[stamps.stamped]
            self.unstamped += len(stamps.stamped) - len(offsets)
        if len(offsets) == 0:
            return
        self.latencies.add(times_us - stamps.sent_us)
        for producer, rows in _by_producer(stamps.producer):
            numbers, before = stamps.sequence[rows], self.by_producer.get(producer, Sequences())
            after = before.then(Sequences.of(numbers))
            if after.duplicated > before.duplicated:
                self._note(producer, before, numbers, offsets[rows])
            self.by_producer[producer] = after

    def then(self, later: Tally) -> None:
        """Merge the piece behind this one."""
        if later.records == 0:
            return
        for producer, sequences in later.by_producer.items():
            before = self.by_producer.get(producer, Sequences())
            after = before.then(sequences)
            if after.duplicated > before.duplicated + sequences.duplicated:
                again = intervals.common(before.seen, sequences.seen)[:SAMPLES, 0].tolist()
                self.duplicates += [Duplicate(later.first_offset, producer, number) for number in again]
            self.by_producer[producer] = after
        self.first_offset = self.first_offset if self.records else later.first_offset
        self.last_offset = later.last_offset
        self.records += later.records
        self.unstamped += later.unstamped
        self.append_times += later.append_times
        self.latencies.merge(later.latencies)
        self.duplicates = sorted(self.duplicates + later.duplicates)[:SAMPLES]

    def _note(self, producer: int, before: Sequences, numbers: NDArray[np.int64], offsets: NDArray[np.int64]) -> None:
        if len(self.duplicates) >= SAMPLES:
            return
        _, first = np.unique(numbers, return_index=True)
        again = np.ones(len(numbers), np.bool_)
        again[first] = False
        again |= intervals.contain(before.seen, numbers)
        where = np.flatnonzero(again)[: SAMPLES - len(self.duplicates)]
        self.duplicates += [Duplicate(int(offsets[i]), producer, int(numbers[i])) for i in where]


def _by_producer(producers: NDArray[np.uint64]) -> Iterator[tuple[int, slice | NDArray[np.int64]]]:
    """Yield each producer's rows, in order."""
    if (producers == producers[0]).all():
        yield int(producers[0]), slice(None)
        return
    order = np.argsort(producers, kind="stable")
    sorted_producers = producers[order]
    begins = np.concatenate(([0], np.flatnonzero(np.diff(sorted_producers)) + 1, [len(order)]))
    for begin, end in itertools.pairwise(begins):
        yield int(sorted_producers[begin]), order[begin:end]


LOG_APPEND_TIME = 1
COLUMNS = ("topic", "partition", "offset", "timestamp", "timestampType", "value")
"""The columns of a batch that `Pieces` reads."""


class Pieces:
    """Tallies by partition, of batches in offset order. A batch out of order starts a new piece."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, int], Tally] = {}
        self._closed: list[tuple[str, int, Tally]] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the rows of a batch with `COLUMNS`."""
        if batch.num_rows == 0:
            return
        for topic in batch.column("topic").unique().to_pylist():
            mine = batch if _uniform(batch.column("topic")) else batch.filter(pc.equal(batch.column("topic"), topic))
            partitions = mine.column("partition").unique().to_pylist()
            for partition in partitions:
                rows = mine if len(partitions) == 1 else mine.filter(pc.equal(mine.column("partition"), partition))
                self._add(topic, partition, rows)

    def _add(self, topic: str, partition: int, rows: pa.RecordBatch) -> None:
        offsets = rows.column("offset").to_numpy(zero_copy_only=False)
        tally = self._open.setdefault((topic, partition), Tally())
        if offsets[0] <= tally.last_offset:
            self._closed.append((topic, partition, tally))
            tally = self._open[(topic, partition)] = Tally()
        times = rows.column("timestamp").cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy(zero_copy_only=False)
        kinds = rows.column("timestampType").to_numpy(zero_copy_only=False)
        tally.add(rows.column("value"), offsets, times, int((kinds == LOG_APPEND_TIME).sum()))

    def all(self) -> list[tuple[str, int, Tally]]:
        """Return topic, partition and tally of all pieces, unordered."""
        return self._closed + [(topic, partition, tally) for (topic, partition), tally in self._open.items()]


def merged(pieces: Sequence[tuple[str, int, Tally]]) -> dict[tuple[str, int], Tally]:
    """Merge pieces, given in any order, to one tally for each partition."""
    whole: dict[tuple[str, int], Tally] = {}
    for topic, partition, tally in sorted(pieces, key=lambda piece: (piece[0], piece[1], piece[2].first_offset)):
        whole.setdefault((topic, partition), Tally()).then(tally)
    return whole


def _uniform(column: pa.Array) -> bool:
    ends = pc.min_max(column)
    return bool(ends["min"] == ends["max"])
