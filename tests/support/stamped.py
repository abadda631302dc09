"""Stamped records as load generators send them, built with NumPy, and an audit of topics without Spark."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from pybroker.client import EARLIEST, LATEST, Admin, ColumnFetcher, LoadGenerator, Producer, TopicPartition
from pybroker_spark.audit.expected import Expected
from pybroker_spark.audit.report import Report, build_report
from pybroker_spark.audit.tally import COLUMNS, Pieces, merged
from tests.support import librdkafka


def stamped_values(producer: int, first: int, count: int, size: int = 100) -> bytes:
    """Return consecutive values with sequences from `first` on and the time of this call."""
    words = np.empty((count, 3), ">u8")
    words[:, 0], words[:, 1], words[:, 2] = producer, np.arange(first, first + count), time.time_ns() // 1000
    values = np.zeros((count, size), np.uint8)
    values[:, :24] = words.view(np.uint8)
    return values.tobytes()


def send_stamped(
    servers: str,
    topic: str,
    partitions: Sequence[int],
    count: int,
    *,
    producer: int = 1,
    first: int = 0,
    size: int = 100,
) -> list[Expected]:
    """Send `count` records to each partition. Returns the expected content."""
    with Producer(servers) as sender:
        load = LoadGenerator(sender)
        for partition in partitions:
            load.send_many(topic, partition, stamped_values(producer, first, count, size), size)
        sender.flush()
    return [Expected(topic, partition, producer, first + count) for partition in partitions]


def audited(servers: str, topic: str, expected: Sequence[Expected] = (), *, committed: bool = False) -> Report:
    """Audit one topic, with `committed` as a read_committed consumer. Ignores the topics in `expected`.

    librdkafka also reads every partition. Raises AssertionError if it finds other records than pybroker's reader:
    otherwise the audit would show a fault of the reader.
    """
    with Admin(servers) as admin:
        (found,) = admin.describe_topics([topic])
        partitions = [TopicPartition(topic, partition.index) for partition in found.partitions]
        ends = admin.list_offsets(dict.fromkeys(partitions, LATEST), read_committed=committed)
    pieces = Pieces()
    for partition in partitions:
        end = ends[partition].offset
        batches = _read(servers, partition, end, committed=committed)
        _compare(servers, partition, (end, batches), committed=committed)
        for batch in batches:
            pieces.add(batch)
    return build_report(
        merged(pieces.all()), [Expected(topic, e.partition, e.producer, e.acknowledged) for e in expected]
    )


def _read(servers: str, partition: TopicPartition, end: int, *, committed: bool) -> list[pa.RecordBatch]:
    batches, at = [], 0
    isolation = "read_committed" if committed else "read_uncommitted"
    with ColumnFetcher(servers, {"isolation.level": isolation}) as fetcher:
        fetcher.assign({partition: EARLIEST})
        while at < end:
            taken = fetcher.take(1.0, columns=COLUMNS, end=end)
            if taken is not None:
                at = taken.next_offset
                batches.append(pa.record_batch(taken).rename_columns(list(COLUMNS)))
    return batches


def _compare(
    servers: str, partition: TopicPartition, read: tuple[int, list[pa.RecordBatch]], *, committed: bool
) -> None:
    """Compare pybroker's records below an end offset with those that librdkafka reads."""
    end, batches = read
    ours = [
        (offset, value, time_us // 1000)
        for batch in batches
        for offset, value, time_us in zip(
            batch.column("offset").to_pylist(),
            batch.column("value").to_pylist(),
            batch.column("timestamp").cast(pa.int64()).to_pylist(),
            strict=True,
        )
    ]
    messages = librdkafka.read_partition(servers, partition.topic, partition.partition, committed=committed)
    theirs = [(m.offset(), m.value(), m.timestamp()[1]) for m in messages if m.offset() < end]
    differing = next((pair for pair in itertools.zip_longest(ours, theirs) if pair[0] != pair[1]), None)
    assert differing is None, (
        f"{partition}: our reader has {len(ours)} records below offset {end} and librdkafka {len(theirs)}; the first"
        f" that differ are {differing[0]!r} and {differing[1]!r}"
    )
