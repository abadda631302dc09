"""Claims about Spark's own Kafka connector against pybroker, and that a job changes one word: the format's name."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pybroker.client import Producer
from pybroker.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.java

MakeTopic = Callable[..., str]
BEGUN_MS = int(time.time()) * 1000 - 1_000_000
"""Times of records begin here; older ones would be deleted by the topic's retention."""


@dataclass(frozen=True)
class Filled:
    """A topic of three partitions, the last one empty, with records that have and lack everything."""

    servers: str
    topic: str


@pytest.fixture(scope="module")
def filled(broker: Broker, make_topic: MakeTopic) -> Filled:
    topic = make_topic(3, "both-formats")
    with Producer(broker.bootstrap_servers) as producer:
        for partition, count in enumerate((40, 9)):
            for number in range(count):
                producer.send(
                    topic,
                    None if number % 7 == 3 else b"value %d" % number,
                    b"key" if number % 2 else None,
                    partition=partition,
                    timestamp_ms=BEGUN_MS + 1000 * number + partition,
                    headers=[("a", b"%d" % number), ("b", None), ("a", b"")][: number % 4],
                )
    return Filled(broker.bootstrap_servers, topic)


def read(spark: SparkSession, form: str, filled: Filled, options: dict[str, str]) -> DataFrame:
    named = {"subscribe": filled.topic} if not {"assign", "subscribePattern"} & options.keys() else {}
    reader = spark.read.format(form).option("kafka.bootstrap.servers", filled.servers)
    return reader.options(**named, **options).load()


def rows(frame: DataFrame) -> list[Any]:
    return sorted(frame.collect(), key=lambda row: (row.topic, row.partition, row.offset))


def by_partition(*values: int) -> str:
    return json.dumps({"both-formats": {str(index): value for index, value in enumerate(values)}})


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({}, 49, id="nothing"),
        pytest.param({"includeHeaders": "true"}, 49, id="headers"),
        pytest.param({"STARTINGoffsets": "earliest", "endingOffsets": "latest"}, 49, id="words"),
        pytest.param(
            {"startingOffsets": by_partition(5, -2, -2), "endingOffsets": by_partition(-1, 4, -1)}, 39, id="offsets"
        ),
        pytest.param(
            {
                "startingTimestamp": str(BEGUN_MS + 3000),
                "endingTimestamp": str(BEGUN_MS + 6001),
                "startingOffsetsByTimestampStrategy": "latest",
            },
            7,
            id="one time",
        ),
        pytest.param(
            {
                "startingOffsetsByTimestamp": by_partition(BEGUN_MS + 9000, BEGUN_MS + 8001, 0),
                "endingOffsetsByTimestamp": by_partition(BEGUN_MS + 9001, BEGUN_MS * 2, 0),
                "startingOffsetsByTimestampStrategy": "latest",
            },
            2,
            id="times",
        ),
        pytest.param({"subscribePattern": "^both-f"}, 49, id="pattern"),
        pytest.param({"assign": '{"both-formats":[1,2]}'}, 9, id="assignment"),
        pytest.param({"minPartitions": "5"}, 49, id="pieces"),
        pytest.param({"kafka.isolation.level": "read_committed", "failOnDataLoss": "false"}, 49, id="committed"),
    ],
)
def test_the_same_options_give_the_same_frame(
    connector: SparkSession, filled: Filled, options: dict[str, str], expected: int
) -> None:
    ours, theirs = (read(connector, form, filled, options) for form in ("pybroker", "kafka"))
    assert ours.schema == theirs.schema
    found = rows(ours)
    assert len(found) == expected
    assert found == rows(theirs)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"startingOffsets": "latest"}, id="start at latest"),
        pytest.param({"endingOffsets": "earliest"}, id="end at earliest"),
        pytest.param({"startingOffsets": '{"both-formats":{"0":1}}'}, id="a partition missing"),
        pytest.param({"kafka.auto.offset.reset": "latest"}, id="an option of Kafka's that Spark decides"),
        pytest.param({"minPartitions": "0"}, id="no partitions"),
        pytest.param({"subscribePattern": "x", "subscribe": "both-formats"}, id="two strategies"),
        pytest.param({"startingTimestamp": str(BEGUN_MS * 2)}, id="no such time"),
    ],
)
@pytest.mark.parametrize("form", ["pybroker", "kafka"])
def test_both_refuse_the_same(connector: SparkSession, filled: Filled, form: str, options: dict[str, str]) -> None:
    with pytest.raises(Exception, match=r"(?i)offset|partition|options|subscribe"):
        read(connector, form, filled, options).collect()


@pytest.mark.parametrize(("writes", "reads"), [("kafka", "pybroker"), ("pybroker", "kafka"), ("kafka", "kafka")])
def test_what_one_writes_the_other_reads(
    connector: SparkSession, broker: Broker, make_topic: MakeTopic, writes: str, reads: str
) -> None:
    topic = make_topic(2)
    frame = connector.range(1000).selectExpr(
        "cast(id as string) as key",
        "encode(concat('value ', id), 'utf-8') as value",
        "cast(id % 2 as int) as partition",
        "case when id % 3 = 0 then array(named_struct('key', 'h', 'value', encode('x', 'utf-8'))) end as headers",
    )
    writer = frame.write.format(writes).mode("append").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    writer.option("topic", topic).save()
    found = read(connector, reads, Filled(broker.bootstrap_servers, topic), {"includeHeaders": "true"}).collect()
    assert sorted((int(row.key), bytes(row.value), row.partition, bool(row.headers)) for row in found) == [
        (number, b"value %d" % number, number % 2, number % 3 == 0) for number in range(1000)
    ]


def stream(spark: SparkSession, form: str, broker: Broker, **options: str) -> DataFrame:
    reader = spark.readStream.format(form).option("kafka.bootstrap.servers", broker.bootstrap_servers)
    return reader.options(startingOffsets="earliest", **options).load()


def test_the_connectors_streams_read_and_write(
    connector: SparkSession, broker: Broker, filled: Filled, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic()
    rows_in = stream(connector, "kafka", broker, subscribe=filled.topic, maxOffsetsPerTrigger="20").select("value")
    writer = rows_in.writeStream.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    writer = writer.option("topic", topic).option("checkpointLocation", str(tmp_path / "checkpoint"))
    assert writer.trigger(availableNow=True).start().awaitTermination(60)
    copied = rows(read(connector, "kafka", Filled(broker.bootstrap_servers, topic), {}))
    assert sorted(row.value or b"" for row in copied) == sorted(
        row.value or b"" for row in rows(read(connector, "pybroker", filled, {}))
    )


def test_a_stream_goes_on_from_the_connectors_checkpoint(
    connector: SparkSession, broker: Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic, seen = make_topic(2), []
    for form in ("kafka", "pybroker"):
        with Producer(broker.bootstrap_servers) as producer:
            for number in range(6):
                producer.send(topic, b"%s %d" % (form.encode(), number), partition=number % 2)
        found: list[bytes] = []

        def note(frame: DataFrame, _: int, found: list[bytes] = found) -> None:
            found.extend(bytes(row.value) for row in frame.collect())

        writer = stream(connector, form, broker, subscribe=topic).writeStream.foreachBatch(note)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        assert writer.trigger(availableNow=True).start().awaitTermination(60)
        seen.append(sorted(found))
    assert seen == [[b"%s %d" % (form, number) for number in range(6)] for form in (b"kafka", b"pybroker")]
