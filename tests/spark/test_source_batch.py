"""Claims about batches: topics read as DataFrames and DataFrames written to topics, by the format `pybroker`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from pybroker.client import LATEST, Admin, Fetcher, Producer, Record, TopicPartition
from pybroker.testing import Broker
from pybroker_spark.source.options import parse_read
from pybroker_spark.source.reader import BatchReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.java

MakeTopic = Callable[..., str]
BEGUN_MS = int(time.time()) * 1000 - 1_000_000
"""Times of records begin here; older ones would be deleted by the topic's retention."""


def fill(broker: Broker, topic: str, counts: list[int]) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        for partition, count in enumerate(counts):
            for number in range(count):
                producer.send(
                    topic,
                    b"value %d" % number,
                    b"key" if number % 2 else None,
                    partition=partition,
                    timestamp_ms=BEGUN_MS + number,
                    headers=[("number", b"%d" % number), ("nothing", None)] if number % 3 else (),
                )


def read(spark: SparkSession, broker: Broker, topic: str, **options: str) -> DataFrame:
    reader = spark.read.format("pybroker").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    return reader.options(subscribe=topic, **options).load()


def written(broker: Broker, topic: str, partitions: int = 1) -> dict[int, list[Record]]:
    """All records of a topic, by partition."""
    found: dict[int, list[Record]] = {}
    wanted = dict.fromkeys((TopicPartition(topic, partition) for partition in range(partitions)), LATEST)
    with Admin(broker.bootstrap_servers) as admin:
        ends = admin.list_offsets(wanted)
    with Fetcher(broker.bootstrap_servers, {"auto.offset.reset": "earliest"}) as fetcher:
        for place, end in ends.items():
            fetcher.assign([place])
            records = found.setdefault(place.partition, [])
            while len(records) < end.offset:  # the test's own timeout ends a read of what is not there
                records += fetcher.poll(0.5)
    return found


def test_rows_have_all_that_records_have(spark: SparkSession, broker: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    fill(broker, topic, [3, 1])
    rows = read(spark, broker, topic, includeHeaders="true").orderBy("partition", "offset").collect()
    assert [(row.partition, row.offset, bytes(row.value)) for row in rows] == [
        (0, 0, b"value 0"),
        (0, 1, b"value 1"),
        (0, 2, b"value 2"),
        (1, 0, b"value 0"),
    ]
    second = rows[1].asDict(recursive=True)
    assert (bytes(second["key"]), rows[0].key) == (b"key", None)
    assert (second["topic"], second["timestampType"]) == (topic, 0)
    assert second["timestamp"].astimezone(UTC) == datetime.fromtimestamp((BEGUN_MS + 1) / 1000, UTC)
    assert second["headers"] == [{"key": "number", "value": b"1"}, {"key": "nothing", "value": None}]
    assert rows[0].headers is None


def test_an_empty_topic_has_columns_and_no_rows(spark: SparkSession, broker: Broker, make_topic: MakeTopic) -> None:
    read_ = read(spark, broker, make_topic(2))
    assert read_.columns == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    assert read_.collect() == []


def test_only_the_columns_of_the_schema_are_built(spark: SparkSession, broker: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    fill(broker, topic, [3])
    reader = spark.read.format("pybroker").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    picked = reader.option("subscribe", topic).schema("offset long, value binary").load()
    assert picked.columns == ["offset", "value"]
    assert [(row.offset, bytes(row.value)) for row in picked.collect()] == [(n, b"value %d" % n) for n in range(3)]
    assert read(spark, broker, topic, columns="offset").collect() == [(0,), (1,), (2,)]
    batch_reader = BatchReader(
        parse_read({"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic}), ("offset",)
    )
    (partition,) = batch_reader.partitions()
    (batch,) = batch_reader.read(partition)
    assert batch.schema == pa.schema([("offset", pa.int64())])


def test_min_partitions_are_that_many_tasks(spark: SparkSession, broker: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    fill(broker, topic, [10])
    rows = read(spark, broker, topic, minPartitions="3", columns="offset")
    assert rows.rdd.glom().map(lambda part: [row.offset for row in part]).collect() == [
        [0, 1, 2],
        [3, 4, 5],
        [6, 7, 8, 9],
    ]


def test_filters_spare_partitions_and_offsets(spark: SparkSession, broker: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic(3)
    fill(broker, topic, [10, 10, 10])
    rows = read(spark, broker, topic, columns="partition,offset,timestamp")
    since = datetime.fromtimestamp((BEGUN_MS + 3) / 1000, UTC).isoformat()
    picked = rows.where(f"partition in (0, 2) and offset < 6 and timestamp >= timestamp '{since}' and offset <> 4")
    assert picked.rdd.getNumPartitions() == 2
    assert sorted((row.partition, row.offset) for row in picked.collect()) == [(0, 3), (0, 5), (2, 3), (2, 5)]


def test_a_refusal_reaches_the_user_in_its_own_words(spark: SparkSession, broker: Broker) -> None:
    with pytest.raises(Exception, match="minPartitions=0: must be a whole number of at least 1"):
        read(spark, broker, "any", minPartitions="0")
    with pytest.raises(Exception, match="startingOffsets=latest: a batch cannot have that; must be earliest"):
        read(spark, broker, "any", startingOffsets="latest").collect()


def test_what_is_gone_when_a_task_reads_is_named(broker: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    fill(broker, topic, [10])
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic, "columns": "offset"}
    for fail in ("true", "false"):
        reader = BatchReader(parse_read({**given, "failOnDataLoss": fail, "startingOffsets": "earliest"}), ("offset",))
        (partition,) = reader.partitions()
        with Admin(broker.bootstrap_servers) as admin:
            admin.delete_records({TopicPartition(topic, 0): 4 if fail == "true" else 6})
        if fail == "true":
            with pytest.raises(
                Exception, match=f"topic '{topic}' partition 0 offsets 0 to 10 cannot be read: .* 4 to 10"
            ):
                list(reader.read(partition))
        else:
            offsets = [offset for batch in reader.read(partition) for offset in batch.column(0).to_pylist()]
            assert offsets == [6, 7, 8, 9]


def save(frame: DataFrame, broker: Broker, mode: str = "append", **options: str) -> None:
    writer = frame.write.format("pybroker").mode(mode).option("kafka.bootstrap.servers", broker.bootstrap_servers)
    writer.options(**options).save()


def test_every_row_is_written_and_acknowledged(spark: SparkSession, broker: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    save(spark.range(10_000).selectExpr("cast(id as string) as value"), broker, topic=topic)
    values = sorted(int(record.value or b"-1") for record in written(broker, topic)[0])
    assert values == list(range(10_000))


def test_a_row_may_say_everything_of_its_record(spark: SparkSession, broker: Broker, make_topic: MakeTopic) -> None:
    topic, at = make_topic(2), datetime.fromtimestamp(BEGUN_MS / 1000 + 0.000_999, UTC)
    frame = spark.createDataFrame(
        [
            (topic, b"k", "one", 1, [("h", bytearray(b"1")), ("n", None)], at, 5),
            (topic, None, "two", 0, None, at, 6),
            (topic, None, None, 0, [], None, 7),
        ],
        "topic string, key binary, value string, partition int, headers array<struct<key:string,value:binary>>,"
        " timestamp timestamp, x int",
    )
    before_ms = round(time.time() * 1000)
    save(frame.coalesce(1), broker)
    records = written(broker, topic, 2)
    assert [(r.key, r.value, list(r.headers)) for r in records[1]] == [(b"k", b"one", [("h", b"1"), ("n", None)])]
    assert [(r.key, r.value, list(r.headers)) for r in records[0]] == [(None, b"two", []), (None, None, [])]
    assert [records[1][0].timestamp_ms, records[0][0].timestamp_ms] == [BEGUN_MS, BEGUN_MS], "microseconds are cut off"
    assert records[0][1].timestamp_ms >= before_ms, "null is now"


def test_a_time_of_another_type_is_refused(spark: SparkSession, broker: Broker, make_topic: MakeTopic) -> None:
    frame = spark.createDataFrame([("x", 5)], "value string, timestamp long")
    with pytest.raises(
        Exception, match=r"timestamp attribute unsupported type bigint. timestamp must be a\(n\) timestamp"
    ):
        save(frame, broker, topic=make_topic())


def test_an_option_that_nobody_reads_is_refused(spark: SparkSession, broker: Broker, make_topic: MakeTopic) -> None:
    with pytest.raises(Exception, match=r"target: there is no such option; there are exactly\.once, topic"):
        save(spark.createDataFrame([("x",)], "value string"), broker, topic=make_topic(), target="orders")


def test_the_option_topic_goes_before_the_column(spark: SparkSession, broker: Broker, make_topic: MakeTopic) -> None:
    one, other = make_topic(), make_topic()
    save(spark.createDataFrame([(one, "x")], "topic string, value string"), broker, topic=other)
    assert [len(written(broker, topic)[0]) for topic in (one, other)] == [0, 1]


def test_a_write_that_replaces_is_refused(spark: SparkSession, broker: Broker, make_topic: MakeTopic) -> None:
    with pytest.raises(Exception, match="mode=overwrite: records of a topic are not replaced; must be append"):
        save(spark.range(1).selectExpr("'x' as value"), broker, mode="overwrite", topic=make_topic())


def test_a_row_without_topic_fails_the_job(spark: SparkSession, broker: Broker) -> None:
    with pytest.raises(Exception, match="topic"):
        save(spark.createDataFrame([(None, "x")], "topic string, value string"), broker)


def test_what_the_broker_refuses_fails_the_job(spark: SparkSession, broker: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    options = {"topic": topic, "kafka.max.request.size": "2000"}
    with pytest.raises(Exception, match=topic):
        save(spark.range(1).selectExpr("repeat('x', 3000) as value"), broker, **options)
    assert json.dumps(written(broker, topic)[0]) == "[]"
