"""Columns and records are two faces of the same bytes, whatever these are, and what was put into the log.

The bytes are those of `tests.support.batches` and of kafka-python. The expected rows are made from what was put in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import cramjam
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from pybroker.client import ColumnFetcher, Fetcher, TopicPartition
from tests.support.batches import (
    CONTROL,
    GZIP,
    LOG_APPEND_TIME,
    SNAPPY,
    TRANSACTIONAL,
    ZSTD,
    Batch,
    Record,
    encode_record,
)
from tests.support.scripted_broker import ScriptedBroker

PARTITION = TopicPartition("t", 0)
PACKERS: dict[int, Callable[[bytes], Any]] = {
    GZIP: cramjam.gzip.compress,
    SNAPPY: cramjam.snappy.compress_raw,
    ZSTD: cramjam.zstd.compress,
}
ABORT, COMMIT = b"\0\0\0\0", b"\0\0\0\1"

Row = tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]] | None]


@dataclass(frozen=True, slots=True)
class Messages:
    """A message set of format v0 or v1."""

    magic: int
    codec: int
    parts: list[tuple[bytes | None, bytes | None]]


part = st.none() | st.binary(max_size=60)
header = st.tuples(st.text(max_size=5), part)
record = st.builds(Record, part, part, st.lists(header, max_size=3).map(tuple), st.integers(-1000, 2**40), st.none())
batch = st.builds(
    Batch,
    st.lists(record, min_size=1, max_size=12).map(tuple),
    attributes=st.sampled_from([0, LOG_APPEND_TIME, TRANSACTIONAL]).flatmap(
        lambda flags: st.sampled_from([0, GZIP, SNAPPY, ZSTD]).map(lambda codec: flags | codec)
    ),
    base_timestamp=st.integers(1000, 2**40),
    producer_id=st.integers(0, 2),
)
marker = st.builds(
    Batch,
    st.sampled_from([ABORT, COMMIT]).map(lambda kind: (Record(b"\0" * 6, kind),)),
    attributes=st.just(TRANSACTIONAL | CONTROL),
    base_timestamp=st.just(5),
    producer_id=st.integers(0, 2),
)
messages = st.builds(
    Messages, st.integers(0, 1), st.sampled_from([0, GZIP]), st.lists(st.tuples(part, part), min_size=1, max_size=6)
)
logs = st.lists(batch | marker | messages, min_size=1, max_size=8)


def packed(made: Batch) -> Batch:
    """The batch with its records compressed, where its attributes say so."""
    packer = PACKERS.get(made.attributes & 7)
    if packer is None:
        return made
    plain = b"".join(encode_record(record, index) for index, record in enumerate(made.records))
    return replace(made, section=bytes(packer(plain)))


def fill(broker: ScriptedBroker, log: list[Batch | Messages], start: int) -> None:
    """Put the log into the broker. Fetches list the transactions that markers from `start` on abort, in their order."""
    begun: dict[int, int] = {}
    offset, aborted = 0, []
    for one in log:
        if isinstance(one, Messages):
            builder = LegacyRecordBatchBuilder(one.magic, one.codec, 1 << 20)
            for index, (key, value) in enumerate(one.parts):
                # Inner offsets of v1 count from 0, those of v0 are the log's.
                relative = one.magic == 1 and one.codec != 0
                builder.append(index if relative else offset + index, 1000 + index, key, value)
            raw, count = bytearray(builder.build()), len(one.parts)
            if one.codec:
                raw[:8] = (offset + count - 1).to_bytes(8, "big")
        else:
            raw, count = bytearray(packed(replace(one, base_offset=offset)).encode()), len(one.records)
            if one.attributes & CONTROL:
                first = begun.pop(one.producer_id, None)
                if first is not None and one.records[0].key == ABORT and offset >= start:
                    aborted.append((one.producer_id, first))
            elif one.attributes & TRANSACTIONAL:
                begun.setdefault(one.producer_id, offset)
        broker.hold(offset, count, bytes(raw))
        offset += count
    broker.aborted = aborted


def rows_put(log: list[Batch | Messages], *, committed: bool) -> list[Row]:
    """The rows that a reader may see: an abort removes what its producer has put since its last marker (KIP-98)."""
    rows: dict[int, Row] = {}
    open_ones: dict[int, list[int]] = {}
    offset = 0
    for one in log:
        if isinstance(one, Messages):
            for index, (key, value) in enumerate(one.parts):
                rows[offset] = (offset, 1000 + index if one.magic else -1, key, value, None)
                offset += 1
            continue
        if one.attributes & CONTROL:
            ended = open_ones.pop(one.producer_id, [])
            for hidden in ended if committed and one.records[0].key == ABORT else []:
                del rows[hidden]
            offset += 1
            continue
        times = [one.base_timestamp + record.timestamp_delta for record in one.records]
        for record, time in zip(one.records, times, strict=True):
            shown = max(times) if one.attributes & LOG_APPEND_TIME else time
            rows[offset] = (offset, shown, record.key, record.value, list(record.headers) or None)
            if one.attributes & TRANSACTIONAL:
                open_ones.setdefault(one.producer_id, []).append(offset)
            offset += 1
    return list(rows.values())


def rows_of_records(servers: str, properties: dict[str, object], start: int) -> list[Row]:
    with Fetcher(servers, properties) as fetcher:
        fetcher.assign({PARTITION: start})
        taken = fetcher.native.take(10)  # the broker gives the whole log at once
        assert taken is not None
        return [(r.offset, r.timestamp_ms, r.key, r.value, list(r.headers) or None) for r in taken.take(len(taken))]


def rows_of_columns(servers: str, properties: dict[str, object], start: int, max_rows: int, end: int) -> list[Row]:
    with ColumnFetcher(servers, properties) as fetcher:
        fetcher.assign({PARTITION: start})
        found: list[Row] = []
        while fetcher.positions()[PARTITION] < end:
            columns = fetcher.take(10, max_rows=max_rows)
            assert columns is not None
            assert columns.rows <= max_rows
            rows = pa.record_batch(columns)
            rows.validate(full=True)
            times = rows.column("timestamp").cast(pa.int64()).to_pylist()
            for row, time_us in zip(rows.to_pylist(), times, strict=True):
                headers = None if row["headers"] is None else [(h["key"], h["value"]) for h in row["headers"]]
                assert time_us % 1000 == 0
                found.append((row["offset"], time_us // 1000, row["key"], row["value"], headers))
        return found


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    log=logs,
    skipped=st.integers(0, 9),
    max_rows=st.integers(1, 20),
    isolation=st.sampled_from(["read_uncommitted", "read_committed"]),
)
def test_records_and_columns_have_what_was_put_into_the_log(
    log: list[Batch | Messages], skipped: int, max_rows: int, isolation: str
) -> None:
    with ScriptedBroker() as broker:
        counts = [len(one.parts) if isinstance(one, Messages) else len(one.records) for one in log]
        start, end = min(skipped, sum(counts) - 1), sum(counts)
        fill(broker, log, start)
        properties: dict[str, object] = {"isolation.level": isolation}
        expected = [row for row in rows_put(log, committed=isolation == "read_committed") if row[0] >= start]
        assert rows_of_records(broker.bootstrap_servers, properties, start) == expected
        assert rows_of_columns(broker.bootstrap_servers, properties, start, max_rows, end) == expected
