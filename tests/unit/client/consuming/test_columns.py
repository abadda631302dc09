"""What comes as columns is what comes as records, in pieces that lose nothing, and nobody's memory stays behind."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from typing import Any

import psutil
import pyarrow as pa
import pytest

from pybroker.client import (
    COLUMNS,
    EARLIEST,
    SENDABLE_COLUMNS,
    Admin,
    ColumnFetcher,
    Fetcher,
    NewTopic,
    Producer,
    TopicPartition,
)
from pybroker.client import Record as PolledRecord
from pybroker.client.errors import BrokerError, ClientError, RecordError, SettingError
from pybroker.testing import Broker
from tests.support.batches import LOG_APPEND_TIME, Batch, Record
from tests.support.scripted_broker import ScriptedBroker
from tests.support.transactions_in_a_log import overlapping

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)
NOW_MS = time.time_ns() // 1_000_000
"""Records of 1970 would be past their retention when the broker first looks."""
SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestamp_type", pa.int32()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """A broker with topic `t`: partition 0 holds 0..999 with keys, nulls and headers, partition 1 holds 0..99."""
    with Broker() as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("t", 2, 1)])
            admin.wait_for_leaders("t")
        with Producer(broker.bootstrap_servers, {"batch.size": 2000, "compression.type": "zstd"}) as producer:
            for number in range(1000):
                producer.send(
                    "t",
                    b"%d" % number if number % 7 else None,
                    key=b"k" if number % 2 else None,
                    partition=0,
                    timestamp_ms=NOW_MS + number,
                    headers=[("a", b"1"), ("b", None)] if number % 3 == 0 else [],
                )
            for number in range(100):
                producer.send("t", b"%d" % number, partition=1)
        yield broker.bootstrap_servers


@pytest.fixture
def scripted() -> Iterator[ScriptedBroker]:
    with ScriptedBroker() as broker:
        yield broker


def read(fetcher: ColumnFetcher, rows: int, **options: Any) -> list[pa.RecordBatch]:
    """Batches until that many rows came."""
    batches: list[pa.RecordBatch] = []
    while sum(batch.num_rows for batch in batches) < rows:
        columns = fetcher.take(10, **options)
        assert columns is not None
        batches.append(pa.record_batch(columns))
    return batches


def rows(batches: Sequence[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def test_the_columns_are_those_of_sparks_connector(servers: str) -> None:
    with ColumnFetcher(servers) as fetcher:
        fetcher.assign({FIRST: EARLIEST})
        columns = fetcher.take(10)
        assert columns is not None
        batch = pa.record_batch(columns)
        batch.validate(full=True)
        assert batch.schema == SCHEMA
        assert tuple(batch.schema.names) == COLUMNS
        assert (columns.topic, columns.partition, columns.rows) == ("t", 0, batch.num_rows)
        assert pa.schema(columns) == SCHEMA


def test_columns_hold_what_records_hold(servers: str) -> None:
    with ColumnFetcher(servers) as fetcher, Fetcher(servers) as records:
        fetcher.assign({FIRST: EARLIEST})
        found = rows(read(fetcher, 1000))
        records.assign({FIRST: EARLIEST})
        expected: list[PolledRecord] = []
        while len(expected) < 1000:
            expected += records.poll(60)
        assert [(r["key"], r["value"], r["offset"], r["partition"], r["topic"]) for r in found] == [
            (r.key, r.value, r.offset, r.partition, r.topic) for r in expected
        ]
        assert [r["timestamp"].timestamp() for r in found] == [pytest.approx(r.timestamp_ms / 1000) for r in expected]
        assert [r["headers"] and [(h["key"], h["value"]) for h in r["headers"]] for r in found] == [
            list(r.headers) or None for r in expected
        ]
        assert {r["timestamp_type"] for r in found} == {0}


def test_libraries_get_names_in_snake_case(servers: str) -> None:
    with ColumnFetcher(servers) as fetcher:
        fetcher.assign({FIRST: EARLIEST})
        columns = fetcher.take(10, columns=["offset", "timestamp_type", "producer_id"])
        assert columns is not None
        batch = columns.to_arrow()
        assert batch.schema.names == ["offset", "timestamp_type", "producer_id"]
        assert batch.num_rows == len(columns) == columns.rows
        frame = columns.to_polars()
        assert frame.columns == ["offset", "timestamp_type", "producer_id"]
        assert frame["offset"].to_list() == batch.column("offset").to_pylist()


def test_fetched_columns_can_be_sent_as_they_are(servers: str) -> None:
    picked = ["key", "value", "timestamp", "headers"]
    with Admin(servers) as admin:
        admin.create_topics([NewTopic("copy", 2, 1)])
        admin.wait_for_leaders("copy")
    with ColumnFetcher(servers) as fetcher, Producer(servers) as producer:
        fetcher.assign({FIRST: EARLIEST})
        sent = 0
        while sent < 1000:
            columns = fetcher.take(10, columns=[name for name in SENDABLE_COLUMNS if name != "topic"])
            assert columns is not None
            sent += len(producer.send_columns(columns, topic="copy"))
        producer.flush()
        fetcher.assign({FIRST: EARLIEST})
        original = pa.Table.from_batches(read(fetcher, 1000, columns=picked))
        fetcher.assign({TopicPartition("copy", 0): EARLIEST})
        assert pa.Table.from_batches(read(fetcher, 1000, columns=picked)).equals(original)


@pytest.mark.parametrize("form", ["capsule", "to_arrow", "to_polars"])
def test_a_whole_take_is_sent_to_its_own_topic_and_partition(servers: str, form: str) -> None:
    """Every column that can be picked; what the broker assigns is assigned anew."""
    topic = f"round-{form}"
    with Admin(servers) as admin:
        admin.create_topics([NewTopic(topic, 2, 1)])
        admin.wait_for_leaders(topic)
    with ColumnFetcher(servers) as fetcher, Producer(servers) as producer:
        for number in range(300):
            headers = [("h", b"%d" % number)] if number % 3 else None
            producer.send(topic, b"%d" % number, b"k" if number % 2 else None, partition=1, headers=headers)
        producer.flush()
        fetcher.assign({TopicPartition(topic, 1): EARLIEST})
        sent = 0
        while sent < 300:
            taken = fetcher.take(10, columns=[*COLUMNS, "producer_id"])
            assert taken is not None
            whole = taken if form == "capsule" else getattr(taken, form)()
            sent += len(producer.send_columns(whole))
        producer.flush()
        fetcher.assign({TopicPartition(topic, 1): EARLIEST})
        rows = pa.Table.from_batches(read(fetcher, 600))
        assert rows.column("offset").to_pylist() == list(range(600))
        assert rows.drop_columns("offset")[:300].equals(rows.drop_columns("offset")[300:])


@pytest.mark.parametrize("ignored", ["offset", "timestampType", "timestamp_type", "producerId", "producer_id"])
def test_a_column_that_the_broker_assigns_is_ignored_of_any_type(servers: str, ignored: str) -> None:
    with Producer(servers) as producer:
        batch = pa.record_batch({"value": [b"x"], ignored: ["of another program"]})
        assert producer.send_columns(batch, topic="ignored").result(60) == 1
        with pytest.raises(SettingError, match='column "leader_epoch" is not known'):
            producer.send_columns(pa.record_batch({"value": [b"x"], "leader_epoch": [1]}), topic="ignored")


def test_what_is_not_picked_is_not_there_and_the_order_is_the_callers(servers: str) -> None:
    with ColumnFetcher(servers) as fetcher:
        fetcher.assign({FIRST: 10})
        batch = pa.record_batch(fetcher.take(10, columns=["producerId", "offset", "value"], max_rows=2))
        assert batch.schema.names == ["producer_id", "offset", "value"]
        assert batch.column("offset").to_pylist() == [10, 11]
        assert batch.column("producer_id").to_pylist()[0] >= 0
        counted = fetcher.take(10, columns=(), max_rows=5)
        assert counted is not None
        assert (counted.rows, counted.bytes) == (5, 8 + 2)  # 12, 13, null, 15, 16; keys of 13 and 15
        assert pa.record_batch(counted).num_rows == 5
        for columns, complaint in ((("value", "value"), "each column once"), (("size",), "columns=size: must be key")):
            with pytest.raises(SettingError, match=complaint):
                fetcher.take(0, columns=columns)
        with pytest.raises(SettingError, match="max_rows=0: must be 1 to 1000000"):
            fetcher.take(0, max_rows=0)


def test_pieces_and_positions_follow_the_rows_handed_out(servers: str) -> None:
    with ColumnFetcher(servers, {"auto.offset.reset": "earliest"}) as fetcher:
        fetcher.assign([FIRST])
        for expected in (7, 14, 21):
            columns = fetcher.take(10, max_rows=7)
            assert columns is not None
            assert (columns.rows, columns.next_offset, fetcher.positions()[FIRST]) == (7, expected, expected)
        fetcher.seek(FIRST, 500)
        assert fetcher.positions()[FIRST] == 500
        assert pa.record_batch(fetcher.take(10, max_rows=1)).column("offset").to_pylist() == [500]
        fetcher.assign({SECOND: 40})
        columns = fetcher.take(10)
        assert columns is not None
        assert (columns.partition, columns.rows, columns.next_offset) == (1, 60, 100)
        assert fetcher.positions() == {SECOND: 100}
        assert fetcher.take(0.01) is None
        with pytest.raises(ClientError, match=r"partition=7\) is not assigned"):
            fetcher.seek(TopicPartition("t", 7), 0)


def test_a_seek_of_one_partition_keeps_the_rest_of_another(servers: str) -> None:
    with ColumnFetcher(servers) as fetcher:
        fetcher.assign({FIRST: 0})
        fetcher.take(10, max_rows=5)
        fetcher.assign({FIRST: 0, SECOND: 99})
        seen = {FIRST: 0, SECOND: 99}
        columns = fetcher.take(10, max_rows=5)
        assert columns is not None
        taken = TopicPartition("t", columns.partition)
        other = SECOND if taken == FIRST else FIRST
        fetcher.seek(other, seen[other])
        assert fetcher.positions() == {taken: columns.next_offset, other: seen[other]}


def test_reading_stops_at_the_end_and_goes_on_behind_it(servers: str) -> None:
    with ColumnFetcher(servers) as fetcher:
        fetcher.assign({FIRST: 100})
        offsets: list[int] = []
        columns = fetcher.take(10, end=150, columns=["offset"])
        while columns is not None and columns.next_offset < 150:
            offsets += pa.record_batch(columns).column("offset").to_pylist()
            columns = fetcher.take(10, end=150, columns=["offset"])
        assert columns is not None
        offsets += pa.record_batch(columns).column("offset").to_pylist()
        assert offsets == list(range(100, 150))
        assert fetcher.positions()[FIRST] == 150
        nothing = fetcher.take(10, end=150)
        assert nothing is not None
        assert (nothing.rows, nothing.next_offset) == (0, 150)
        assert pa.record_batch(fetcher.take(10, max_rows=1)).column("offset").to_pylist() == [150]


def test_batches_without_records_for_a_consumer_move_the_position(scripted: ScriptedBroker) -> None:
    scripted.hold(0, 3, Batch(tuple(Record() for _ in range(3)), attributes=16, producer_id=7).encode())
    scripted.hold(
        3, 1, Batch((Record(b"\0" * 6, key=b"\0\0\0\0"),), base_offset=3, attributes=48, producer_id=7).encode()
    )
    scripted.aborted = [(7, 0)]
    with ColumnFetcher(scripted.bootstrap_servers, {"isolation.level": "read_committed"}) as fetcher:
        fetcher.assign({FIRST: 0})
        columns = fetcher.take(10)
        assert columns is not None
        assert (columns.rows, columns.next_offset, fetcher.positions()[FIRST]) == (0, 4, 4)
        batch = pa.record_batch(columns)
        assert (batch.num_rows, batch.schema) == (0, SCHEMA)


def test_aborted_transactions_are_left_out_in_whatever_order_they_end(scripted: ScriptedBroker) -> None:
    overlapping(scripted)
    with ColumnFetcher(scripted.bootstrap_servers, {"isolation.level": "read_committed"}) as fetcher:
        fetcher.assign({FIRST: 0})
        assert pa.record_batch(fetcher.take(30, columns=["value"])).column("value").to_pylist() == [b"c"]


def test_times_of_the_broker_and_times_beyond_microseconds(scripted: ScriptedBroker) -> None:
    scripted.hold(0, 1, Batch(base_timestamp=5, max_timestamp=9000, attributes=LOG_APPEND_TIME).encode())
    scripted.hold(1, 1, Batch(base_offset=1, base_timestamp=2**62, max_timestamp=2**62).encode())
    with ColumnFetcher(scripted.bootstrap_servers) as fetcher:
        fetcher.assign({FIRST: 0})
        (batch,) = read(fetcher, 2, columns=["timestamp", "timestampType"])
        assert batch.column("timestamp").cast(pa.int64()).to_pylist() == [9_000_000, 2**63 - 1]
        assert batch.column("timestamp_type").to_pylist() == [1, 0]


def test_header_keys_that_are_no_utf_8_are_shown_as_java_shows_them(scripted: ScriptedBroker) -> None:
    damaged = Batch((Record(headers=(("k@", b"1"),)),)).encode().replace(b"k@", b"k\xff")
    scripted.hold(0, 1, damaged)
    with ColumnFetcher(scripted.bootstrap_servers, {"check.crcs": "false"}) as fetcher:
        fetcher.assign({FIRST: 0})
        (batch,) = read(fetcher, 1, columns=["headers"])
        batch.validate(full=True)
        assert batch.to_pylist() == [{"headers": [{"key": "k�", "value": b"1"}]}]


def test_a_batch_that_cannot_be_read_is_met_until_the_reader_goes_elsewhere(scripted: ScriptedBroker) -> None:
    scripted.hold(0, 1, Batch().encode())
    scripted.hold(1, 1, Batch(base_offset=1, crc=1).encode())
    scripted.hold(2, 1, Batch(base_offset=2).encode())
    with ColumnFetcher(scripted.bootstrap_servers) as fetcher:
        fetcher.assign({FIRST: 0})
        columns = fetcher.take(10)
        assert columns is not None
        assert (columns.rows, columns.next_offset) == (1, 1)
        for _ in range(2):
            with pytest.raises(RecordError, match='topic "t" partition 0 offset 1: the batch\'s CRC'):
                fetcher.take(10)
        assert fetcher.positions()[FIRST] == 1
        fetcher.seek(FIRST, 2)
        assert pa.record_batch(fetcher.take(10)).column("offset").to_pylist() == [2]


def test_what_a_broker_refuses_is_raised(servers: str) -> None:
    with ColumnFetcher(servers, {"auto.offset.reset": "none"}) as fetcher:
        fetcher.assign({FIRST: 5_000})
        with pytest.raises(BrokerError, match="OFFSET_OUT_OF_RANGE"):
            fetcher.take(10)


def test_columns_outlive_their_fetcher_and_can_be_taken_over_again(servers: str) -> None:
    with ColumnFetcher(servers) as fetcher:
        fetcher.assign({SECOND: 0})
        columns = fetcher.take(10)
    assert columns is not None
    first, second = pa.record_batch(columns), pa.record_batch(columns)
    del columns
    gc.collect()
    assert first.equals(second)
    assert first.column("value").to_pylist() == [b"%d" % number for number in range(100)]
    assert first.column("value").buffers()[2].address == second.column("value").buffers()[2].address


def test_memory_comes_back_whether_anybody_took_the_columns_or_not(servers: str) -> None:
    process = psutil.Process()
    with ColumnFetcher(servers, {"fetch.max.wait.ms": 1}) as fetcher:
        fetcher.assign({FIRST: 0})
        columns = read_whole(fetcher)
        for _ in range(100):
            columns.__arrow_c_array__()  # capsules that nobody takes
        before = process.memory_info().rss
        for _ in range(300):
            columns = read_whole(fetcher)
            columns.__arrow_c_array__()
            columns.__arrow_c_schema__()
            pa.record_batch(columns)
        gc.collect()
        # 300 rounds of some 25 KB each, twice over, would be 15 MB.
        assert process.memory_info().rss - before < 5 << 20


def read_whole(fetcher: ColumnFetcher) -> Any:
    fetcher.seek(FIRST, 0)
    columns = fetcher.take(10)
    while columns is not None and columns.next_offset < 1000:
        columns = fetcher.take(10)
    return columns
