"""The reader of a stream: the end of each micro-batch, and the detection of lost data.

Owns the limits of a micro-batch and the detection of lost data between micro-batches. Offsets are stored only in
Spark's checkpoint: the plan of `partitions` depends on its arguments and, for partitions added between them, on
their earliest offsets. Runs in one long-lived process of the driver; `read` runs in the workers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from pybroker.client import EARLIEST, LATEST, BrokerError, ErrorCode, TopicPartition
from pybroker_spark.source import samples
from pybroker_spark.source.errors import OptionError
from pybroker_spark.source.offsets import (
    AtOffsets,
    Checkpoint,
    Everywhere,
    Offsets,
    in_order,
    named,
    read_beginning,
    read_checkpoint,
    with_beginning,
    write_checkpoint,
)
from pybroker_spark.source.options import ReadOptions
from pybroker_spark.source.planning import Planner
from pybroker_spark.source.ranges import OffsetRange, limit_rows, limit_shares, split
from pybroker_spark.source.reader import RangePartition, read_range


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads records written to the partitions that the options select, including partitions that are added later."""

    def __init__(self, options: ReadOptions, columns: tuple[str, ...]) -> None:
        self.options, self.columns = options, columns
        self._planner: Planner | None = None
        self._initial: Checkpoint | None = None
        """The start of the query; Spark requests it repeatedly until the first micro-batch is done."""
        self._target: Offsets | None = None
        """With availableNow: the end of the query. No higher offset is returned."""
        self._latest: Offsets = {}
        """The latest offsets at the last check."""
        self._last_batch_s: float | None = None
        """Time of the last micro-batch with records; None before the first."""
        self._topic_ids: dict[str, bytes] = {}
        """The topics seen by this reader; not in the checkpoint, so they are unknown after a restart."""

    def __reduce__(self) -> tuple[type[StreamReader], tuple[ReadOptions, tuple[str, ...]]]:
        """Pickle options and columns for the workers, without connections."""
        return StreamReader, (self.options, self.columns)

    @property
    def planner(self) -> Planner:
        """Return the planner, created on first use."""
        if self._planner is None:
            self._planner = Planner(self.options)
        return self._planner

    def initialOffset(self) -> Checkpoint:
        """Return the start of a query without checkpoint: the same in every call."""
        if self._initial is None:
            self._initial = write_checkpoint(self.planner.initial())
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit of the options, which Spark passes to `latestOffset`."""
        if self.options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self.options.max_offsets_per_trigger)
        if self.options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(self.options.max_bytes_per_trigger)
        if self.options.min_offsets_per_trigger is not None:
            return ReadMinRows(self.options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Set the current end as the end of the query."""
        self._target = self.planner.all_at(self.planner.partitions(missing_ok=True), LATEST)

    def reportLatestOffset(self) -> Checkpoint | None:
        """Return the latest offsets at the last check, for Spark's progress."""
        return write_checkpoint(self._latest) if self._latest else None

    def latestOffset(self, start: Checkpoint, limit: ReadLimit) -> Checkpoint:
        """Return the end of the next micro-batch, or `start` itself without new data. Raises DataLossError."""
        begun = read_checkpoint(start)
        latest = self._read_latest(begun)
        self._latest = latest
        if not isinstance(limit, ReadAllAvailable):
            latest = self._limited(begun, latest, limit)
        if latest == begun:
            return start
        end = write_checkpoint(latest)
        return with_beginning(end, begun) if start == self._initial and not self._begins_the_same() else end

    def _limited(self, begun: Offsets, latest: Offsets, limit: ReadLimit) -> Offsets:
        """Apply the limits: return the end of a micro-batch with at most, or at least, the configured records."""
        new = [partition for partition in latest if partition not in begun]
        begin = {**begun, **self.planner.all_at(new, EARLIEST)}
        if self._waits_for_more(begin, latest):
            return begun
        match limit:
            case ReadMaxRows(max_rows=rows):
                return limit_rows(rows, begin, latest)
            case ReadMaxBytes(max_bytes=size):
                waiting = {partition: begin[partition] for partition in latest if latest[partition] > begin[partition]}
                return limit_shares(size, begin, latest, samples.row_bytes(self.options, waiting))
        return latest

    def _begins_the_same(self) -> bool:
        """Whether a restart would compute the same start, except for deleted records."""
        match self.options.starting:
            case Everywhere(mark=mark):
                return mark == EARLIEST
            case AtOffsets(offsets=offsets):
                return LATEST not in offsets.values()
        return False

    def partitions(self, start: Checkpoint, end: Checkpoint) -> list[InputPartition]:
        """Return the tasks of a micro-batch. Partitions that only `end` contains are read from their start."""
        begin, until = read_checkpoint(start), read_checkpoint(end)
        if start != end and (written := read_beginning(end)) is not None:
            begin = written
        removed = begin.keys() - until.keys()
        if removed:
            self.planner.lose(f"{_positions(begin, removed)}: the partitions are gone")
        begin |= self._beginnings([partition for partition in until if partition not in begin])
        ranges = []
        for partition in in_order(until.keys() & begin.keys()):
            wanted = OffsetRange(partition, begin[partition], until[partition])
            if wanted.size < 0:
                self.planner.lose(f"{_shrunk(partition, wanted.start, wanted.end)}")
            ranges.append(wanted)
        options = self.options
        pieces = split(ranges, min_partitions=options.min_partitions, max_records=options.max_records_per_partition)
        return [RangePartition(piece) for piece in pieces]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of one piece, in a worker."""
        return read_range(self.options, self.columns, partition)

    def commit(self, end: Checkpoint) -> None:
        """Do nothing: Spark's checkpoint stores the offsets."""

    def stop(self) -> None:
        """Close the connections."""
        if self._planner is not None:
            self._planner.close()

    def _read_latest(self, begun: Offsets) -> Offsets:
        """Return the latest offsets of the current partitions, with retries while they contradict earlier offsets."""
        attempts = self.options.fetch_attempts
        for attempt in range(1, attempts + 1):
            latest = self._target if self._target is not None else self._query_latest()
            lost = [_shrunk(p, begun[p], latest[p]) for p in in_order(latest) if p in begun and latest[p] < begun[p]]
            removed = begun.keys() - latest.keys()
            if removed:
                lost.append(f"{_positions(begun, removed)}: gone, deleted or not among what the options name")
            if not lost or self._target is not None:
                break
            if attempt < attempts:
                time.sleep(self.options.fetch_retry_s)
        lost += self._made_anew(begun)
        if lost:
            self.planner.lose("; ".join(lost))
        return latest

    def _query_latest(self) -> Offsets:
        try:
            return self.planner.all_at(self.planner.partitions(missing_ok=True), LATEST)
        except BrokerError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return self.planner.all_at(self.planner.partitions(missing_ok=True), LATEST)  # deleted meanwhile

    def _made_anew(self, begun: Offsets) -> list[str]:
        """Return the topics that were recreated since the last check, which offsets alone may not show."""
        now = {topic: topic_id for topic, topic_id in self.planner.topic_ids.items() if any(topic_id)}
        anew = [topic for topic, topic_id in now.items() if self._topic_ids.get(topic, topic_id) != topic_id]
        self._topic_ids |= now
        read = {topic: [partition for partition in begun if partition.topic == topic] for topic in anew}
        return [f"{_positions(begun, read[topic])}: the topic was made anew" for topic in anew if read[topic]]

    def _beginnings(self, new: list[TopicPartition]) -> Offsets:
        """Return the earliest offsets of added partitions. One that does not start at 0 has lost records."""
        if not new:
            return {}
        there = set(self.planner.partitions(missing_ok=True))
        removed = [partition for partition in new if partition not in there]
        if removed:
            self.planner.lose(f"{named(removed)}: added and gone before it was read from offset 0")
        begin = self.planner.all_at([partition for partition in new if partition in there], EARLIEST)
        for partition in in_order(begin):
            if begin[partition] > 0:
                self.planner.lose(f"{named([partition])}: added, and begins at offset {begin[partition]}, not at 0")
        return begin

    def _waits_for_more(self, begin: Offsets, latest: Offsets) -> bool:
        """Whether fewer than `minOffsetsPerTrigger` records are available, for less than `maxTriggerDelay`."""
        least = self.options.min_offsets_per_trigger
        if least is None or self._target is not None:
            return False
        now = time.monotonic()
        waiting = sum(latest[partition] - begin[partition] for partition in latest)
        due = self._last_batch_s is None or now - self._last_batch_s >= self.options.max_trigger_delay_s
        if waiting < least and not due:
            return True
        self._last_batch_s = now
        return False


class RefusedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Replaces a reader with invalid options, and raises the error at the first call.

    PySpark (4.3) hides an error of `streamReader` itself behind one of its own, about a variable.
    """

    def __init__(self, error: OptionError) -> None:
        self.error = error

    def initialOffset(self) -> Checkpoint:
        """Raises OptionError."""
        raise self.error

    def getDefaultReadLimit(self) -> ReadLimit:
        """Raises OptionError."""
        raise self.error

    def prepareForTriggerAvailableNow(self) -> None:
        """Raises OptionError."""
        raise self.error

    def latestOffset(self, start: Checkpoint, limit: ReadLimit) -> Checkpoint:  # noqa: ARG002 (Spark's arguments)
        """Raises OptionError."""
        raise self.error

    def partitions(self, start: Checkpoint, end: Checkpoint) -> list[InputPartition]:  # noqa: ARG002 (the same)
        """Raises OptionError."""
        raise self.error

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002 (the same)
        """Raises OptionError."""
        raise self.error


def _shrunk(partition: TopicPartition, read_to: int, ends_at: int) -> str:
    return (
        f"topic {partition.topic!r} partition {partition.partition}: was read to offset {read_to}, and now ends at "
        f"{ends_at}; was the topic deleted and made anew?"
    )


def _positions(offsets: Offsets, partitions: Iterable[TopicPartition]) -> str:
    """Return a text with partitions and their positions."""
    return ", ".join(f"topic {p.topic!r} partition {p.partition} at offset {offsets[p]}" for p in in_order(partitions))
