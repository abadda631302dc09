"""Reads offset ranges in tasks; the reader of a batch.

Owns the loop from fetched batches to Arrow batches, and the handling of records deleted after planning. The native
client builds the columns, only those that are read; no code here handles single values.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from pybroker.client import EARLIEST, LATEST, BrokerError, ColumnFetcher, ErrorCode, LogTruncationError, TopicPartition
from pybroker_spark.source import fetchers
from pybroker_spark.source.errors import ReadTimeoutError
from pybroker_spark.source.filters import Narrowing
from pybroker_spark.source.options import ReadOptions
from pybroker_spark.source.planning import Planner
from pybroker_spark.source.ranges import OffsetRange
from pybroker_spark.source.worker import freeze_loaded, log_as_spark

_POLL_TIMEOUT_S = 1.0
"""Seconds without records after which the cluster is queried for the missing offsets."""

_log = logging.getLogger(__name__)


class RangePartition(InputPartition):
    """The input of one task, as a plain value."""

    def __init__(self, wanted: OffsetRange) -> None:
        super().__init__((wanted.partition.topic, wanted.partition.partition, wanted.start, wanted.end))

    @property
    def wanted(self) -> OffsetRange:
        """Return the offsets to read."""
        topic, partition, start, end = self.value
        return OffsetRange(TopicPartition(topic, partition), start, end)


class BatchReader(DataSourceReader):
    """Reads the current data of the partitions that the options select."""

    def __init__(self, options: ReadOptions, columns: tuple[str, ...]) -> None:
        self.options, self.columns = options, columns
        self.narrowing = Narrowing()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Store the filters, to exclude partitions and offsets. Spark still applies all of them."""
        self.narrowing = Narrowing.of(filters)
        return filters

    def partitions(self) -> list[InputPartition]:
        """Return one task for each piece of a partition that contains offsets."""
        with Planner(self.options) as planner:
            return [RangePartition(piece) for piece in planner.batch(self.narrowing)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of one piece; Spark passes a partition without value where there is none."""
        return read_range(self.options, self.columns, partition)


def read_range(options: ReadOptions, columns: tuple[str, ...], partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """Yield Arrow batches of the records from a range's start to its end. Raises DataLossError, ReadTimeoutError."""
    if not isinstance(partition, RangePartition):
        return
    log_as_spark()
    freeze_loaded()
    with fetchers.lent(options.bootstrap_servers, options.properties) as fetcher:
        yield from _RangeRead(options, columns, partition.wanted, fetcher).batches()


class _RangeRead:
    """The read of one range; `position` is the next offset to read."""

    def __init__(
        self, options: ReadOptions, columns: tuple[str, ...], wanted: OffsetRange, fetcher: ColumnFetcher
    ) -> None:
        self.options, self.columns, self.wanted, self.fetcher = options, columns, wanted, fetcher
        self.position = wanted.start
        self.deadline = 0.0

    def batches(self) -> Iterator[pa.RecordBatch]:
        self._begin_at(self.wanted.start)
        while self.position < self.wanted.end:
            try:
                taken = self.fetcher.take(_POLL_TIMEOUT_S, columns=self.columns, end=self.wanted.end)
            except LogTruncationError as error:
                self._take_truncation(error)
                continue
            except BrokerError as error:
                if error.code not in (ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                    raise
                self._check_range()
                continue
            if taken is None:
                self._check_range()
                continue
            self.position = taken.next_offset
            self._move_deadline()
            if self.position >= self.wanted.end:
                self.fetcher.assign([])  # no prefetching while Spark processes the last batch
            if taken.rows:
                # Spark compares names with its schema's, which are those of its connector.
                yield pa.record_batch(taken).rename_columns(list(self.columns))

    def _take_truncation(self, error: LogTruncationError) -> None:
        """Handle a truncation by a new leader: with failOnDataLoss=false, read its records instead (KIP-320)."""
        with Planner(self.options) as planner:
            planner.lose(f"{self.wanted} was read in part, and cut: {error}")
        parts = error.divergent[self.wanted.partition]
        self._begin_at(self.wanted.start if parts is None else max(parts.offset, self.wanted.start))

    def _begin_at(self, offset: int) -> None:
        self.position = offset
        self.fetcher.assign({self.wanted.partition: offset})
        self._move_deadline()

    def _move_deadline(self) -> None:
        self.deadline = time.monotonic() + self.options.poll_timeout_s

    def _check_range(self) -> None:
        """Nothing arrived: find out whether the records are deleted or late."""
        rest = OffsetRange(self.wanted.partition, self.position, self.wanted.end)
        with Planner(self.options) as planner:
            try:
                (first,) = planner.all_at([rest.partition], EARLIEST).values()
                (last,) = planner.all_at([rest.partition], LATEST).values()
            except BrokerError as error:
                if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise
                planner.lose(f"{rest} cannot be read: the partition is gone")
                self.position = self.wanted.end
                return
            if first > rest.start or last < rest.end:
                planner.lose(f"{rest} cannot be read: the log holds {first} to {last}")
                if first >= rest.end or last <= rest.start:
                    self.position = self.wanted.end
                    return
                if first > rest.start:
                    self._begin_at(first)
                    return
                self.wanted = OffsetRange(rest.partition, self.wanted.start, last)
        if time.monotonic() >= self.deadline:
            waited = self.options.poll_timeout_s
            raise ReadTimeoutError(
                f"{rest}: nothing came for {waited:g} s, and the log holds {first} to {last}; is the broker overloaded,"
                " or kafkaConsumer.pollTimeoutMs too short?"
            )
