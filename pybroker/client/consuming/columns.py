"""A fetcher that returns records as Arrow columns, for programs that process many records at a time.

Columns have the order and types of Spark's Kafka connector, and names in snake case. The engine builds only the
selected columns, without the GIL, and exports them by Arrow's PyCapsule interface; this module imports no Arrow
library. Works with any Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pybroker.client import native
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.closing import Closing
from pybroker.client.consuming.fetcher import make_native, starts_of
from pybroker.client.consuming.record_columns import COLUMNS, SENDABLE_COLUMNS, RecordColumns, in_snake_case
from pybroker.client.errors import ClientError, SettingError
from pybroker.client.one_caller import FREE_CALLS, ThreadCalls, one_caller
from pybroker.client.settings import FetcherSettings

__all__ = ["COLUMNS", "SENDABLE_COLUMNS", "ColumnFetcher", "RecordColumns"]

MAX_ROWS = 10_000
"""Rows of one take. Spark's Arrow reader gains nothing from more."""
_MAX_ROWS_AT_MOST = 1_000_000
"""Keeps the topic's column below 2 GiB for the longest name."""
MAX_BYTES = 64 << 20
"""Encoded bytes of records of one take, unless one record is larger: a compressed chunk may decompress to gigabytes."""


@one_caller(free=FREE_CALLS)
class ColumnFetcher(Closing):
    """`with ColumnFetcher("127.0.0.1:9092") as f: f.assign([partition]); pyarrow.record_batch(f.take())`.

    Accepts a fetcher's settings. One thread at a time, as a fetcher; any thread may close it.
    """

    def __init__(self, bootstrap_servers: str, properties: Mapping[str, object] | None = None) -> None:
        self._calls = ThreadCalls("ColumnFetcher")
        self.settings = FetcherSettings.of_client(bootstrap_servers, properties)
        self._native = make_native(self.settings)
        self._reader = native.ColumnReader(self._native)

    def assign(self, partitions: Mapping[TopicPartition, int | None] | Sequence[TopicPartition]) -> None:
        """Read these partitions from now on, and no others; each from its offset, as `Fetcher.assign`."""
        self._reader.assign(starts_of(partitions, self.settings))

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Set the position of one assigned partition. Raises ClientError when it is not assigned."""
        if not self._reader.seek(partition.topic, partition.partition, offset):
            raise ClientError(f"{partition} is not assigned")

    def positions(self) -> dict[TopicPartition, int]:
        """Return the next offset of each partition; below 0 (`EARLIEST`, `LATEST`) before its first record."""
        return {TopicPartition(topic, index): offset for topic, index, offset in self._reader.positions()}

    def take(
        self,
        timeout_s: float = 1.0,
        *,
        columns: Sequence[str] = COLUMNS,
        end: int | None = None,
        max_rows: int = MAX_ROWS,
    ) -> RecordColumns | None:
        """Return the next records of one partition as columns; None where none arrive before the timeout.

        `columns` selects and orders columns of `COLUMNS`, and `producer_id`, that of the batch (-1: none). Others
        are not built. `Producer.send_columns` sends those of `SENDABLE_COLUMNS`, and ignores the others.

        Records at or above `end` are kept for a later call. Once all below `end` are read, the result has no rows
        and a `next_offset` of at least `end`. The result also has no rows where batches contain no consumer records,
        for example those of aborted transactions; its `next_offset` is then behind them.

        Values are those of Spark's connector: headers are null where a record has none; header keys are UTF-8, with
        U+FFFD for invalid bytes; a record of format v0 has timestamp and timestamp type -1. A timestamp out of the
        range of microseconds is replaced by the nearest in the range.

        Raises the error of a broker's response, or RecordError for a received batch that cannot be read, once the
        records before it were returned: at every call, until `seek` or `assign`.
        """
        names = picked(columns, max_rows)
        taken = self._reader.take(timeout_s, names, end=end, max_rows=max_rows, max_bytes=MAX_BYTES)
        return None if taken is None else RecordColumns(taken)

    def metrics(self) -> dict[str, float]:
        """As `Fetcher.metrics`."""
        return self._native.metrics()

    def close(self) -> None:
        """Close; waits for the I/O thread. Columns that were taken stay valid."""
        self._native.close()


def picked(columns: Sequence[str], max_rows: int) -> list[str]:
    """Return the engine's names of columns. Raises SettingError for a duplicate name, and for an invalid `max_rows`."""
    names = in_snake_case(columns)
    if len(set(names)) < len(names):
        raise SettingError(f"columns={','.join(columns)}: must name each column once")
    if not 1 <= max_rows <= _MAX_ROWS_AT_MOST:
        raise SettingError(f"max_rows={max_rows}: must be 1 to {_MAX_ROWS_AT_MOST}")
    return names
