"""Reads back the rows that attempts of a task have written; used only after a failure.

Owns the range to read (from the first attempt's offsets to the end of each partition), and the error if a part of the
range was deleted. Rows are recognized by the producer id of their batches, which belongs to one task of one batch of
one query.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pybroker.client import EARLIEST, LATEST, Admin, BrokerError, ColumnFetcher, TopicPartition
from pybroker_spark.sink.entries import TopicMark
from pybroker_spark.sink.errors import TargetLostError
from pybroker_spark.sink.ledger import UNKNOWN_TOPIC

COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "headers", "producer_id")
_SILENCE_SECONDS: Final = 60.0


def begins_of(admin: Admin, marks: Mapping[str, TopicMark]) -> dict[TopicPartition, int]:
    """Return by partition the first offset that may contain rows of a task, from the marks of its first attempt.

    Partitions added since, and recreated topics, are read from their start. Raises TargetLostError if a topic, or
    records that the task may have written, were deleted.
    """
    begins: dict[TopicPartition, int] = {}
    for topic, mark in marks.items():
        try:
            (found,) = admin.describe_topics([topic])
        except BrokerError as error:
            if error.code.name != UNKNOWN_TOPIC:
                raise
            written = ", ".join(f"{topic}-{index} from offset {end}" for index, end in enumerate(mark.ends))
            raise TargetLostError(
                f"topic {topic!r} does not exist, and an earlier attempt may have written {written}"
            ) from error
        same = found.topic_id.hex() == mark.topic_id
        noted = [TopicPartition(topic, partition.index) for partition in found.partitions]
        starts = admin.list_offsets(dict.fromkeys(noted, EARLIEST))
        for partition in noted:
            known = same and partition.partition < len(mark.ends)
            start = starts[partition].offset
            begins[partition] = mark.ends[partition.partition] if known else start
            if start > begins[partition]:
                raise TargetLostError(
                    f"{topic}-{partition.partition}: the log begins at offset {start}. An earlier attempt may have"
                    f" written records from offset {begins[partition]} on, which were deleted before this check"
                )
    return begins


def read_rows(
    admin: Admin,
    begins: Mapping[TopicPartition, int],
    producer_id: int,
    servers: tuple[str, Mapping[str, str]],
) -> Iterator[pa.RecordBatch]:
    """Yield the rows with a producer id from `begins` to the current end, each batch of one partition in offset order.

    `servers` are the bootstrap servers and the client's properties. Raises TargetLostError, ClientError.
    """
    ends = admin.list_offsets(dict.fromkeys(begins, LATEST))
    properties = {"auto.offset.reset": "none", "isolation.level": "read_uncommitted"}
    with ColumnFetcher(servers[0], {**servers[1], **properties}) as fetcher:
        for partition, begin in begins.items():
            end = ends[partition].offset
            if end < begin:
                raise TargetLostError(
                    f"{partition.topic}-{partition.partition}: the log ended at offset {begin}, and ends at {end} now"
                )
            if end > begin:
                yield from _rows_of(fetcher, partition, (begin, end), producer_id)


def _rows_of(
    fetcher: ColumnFetcher, partition: TopicPartition, span: tuple[int, int], producer_id: int
) -> Iterator[pa.RecordBatch]:
    at, end = span
    fetcher.assign({partition: at})
    deadline = time.monotonic() + _SILENCE_SECONDS
    while at < end:
        taken = fetcher.take(1.0, columns=COLUMNS, end=end)
        if taken is None:
            if time.monotonic() > deadline:
                raise TargetLostError(
                    f"{partition.topic}-{partition.partition}: no record arrived from offset {at} for"
                    f" {_SILENCE_SECONDS:.0f} s, and the log ends at {end}"
                )
            continue
        at, deadline = taken.next_offset, time.monotonic() + _SILENCE_SECONDS
        rows = pa.record_batch(taken)
        own = rows.filter(pc.equal(rows.column("producer_id"), producer_id))
        if own.num_rows:
            yield own
