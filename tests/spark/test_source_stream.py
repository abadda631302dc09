"""Claims about streams that read topics by the format `pybroker`.

What a micro-batch plans is the matter of `test_source_planning.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pybroker.client import Admin, Producer, TopicPartition
from pybroker.client.administration.topics import MorePartitions
from pybroker.testing import Broker
from tests.support.conditions import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = pytest.mark.java

MakeTopic = Callable[..., str]
Batches = list[list[tuple[int, int]]]


def fill(broker: Broker, topic: str, counts: Sequence[int]) -> None:
    with Producer(broker.bootstrap_servers) as producer:
        for partition, count in enumerate(counts):
            for number in range(count):
                producer.send(topic, b"%d" % number, partition=partition)


def start(
    spark: SparkSession, broker: Broker, checkpoint: Path, topic: str, options: dict[str, str], *, available_now: bool
) -> tuple[StreamingQuery, Batches]:
    """A query that notes down (partition, offset) of each micro-batch."""
    batches: Batches = []

    def note(frame: DataFrame, _: int) -> None:
        batches.append(sorted((row.partition, row.offset) for row in frame.collect()))

    reader = spark.readStream.format("pybroker").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    frame = reader.options(subscribe=topic, columns="partition,offset", **options).load()
    writer = frame.writeStream.foreachBatch(note).option("checkpointLocation", str(checkpoint))
    writer = writer.trigger(availableNow=True) if available_now else writer.trigger(processingTime="0 seconds")
    return writer.start(), batches


def run(spark: SparkSession, broker: Broker, checkpoint: Path, topic: str, **options: str) -> Batches:
    query, batches = start(spark, broker, checkpoint, topic, options, available_now=True)
    assert query.awaitTermination(60)
    return batches


def test_available_now_reads_what_there_is_in_limited_batches_and_goes_on_after_a_restart(
    spark: SparkSession, broker: Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(2)
    fill(broker, topic, [6, 3])
    limited = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "6"}
    assert run(spark, broker, tmp_path, topic, **limited) == [
        [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1)],
        [(0, 4), (0, 5), (1, 2)],
    ]
    fill(broker, topic, [1, 1])
    assert run(spark, broker, tmp_path, topic, **limited) == [[(0, 6), (1, 3)]]


def test_a_limit_of_bytes_is_kept_by_estimate(
    spark: SparkSession, broker: Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic()
    with Producer(broker.bootstrap_servers) as producer:
        for _ in range(40):
            producer.send(topic, b"x" * 1000)
    batches = run(spark, broker, tmp_path, topic, startingOffsets="earliest", maxBytesPerTrigger="20000")
    assert [row for batch in batches for row in batch] == [(0, offset) for offset in range(40)]
    assert len(batches) in (2, 3)


def test_a_partition_added_while_streaming_is_read_and_a_deleted_topic_ends_the_query(
    spark: SparkSession, broker: Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic()
    given = {"startingOffsets": "earliest", "fetchOffset.retryIntervalMs": "10"}
    query, batches = start(spark, broker, tmp_path, topic, given, available_now=False)

    def seen() -> list[tuple[int, int]]:
        if query.exception() is not None:
            raise AssertionError(query.exception())
        return sorted(row for batch in batches for row in batch)

    with Admin(broker.bootstrap_servers) as admin:
        fill(broker, topic, [2])
        wait_until(lambda: seen() == [(0, 0), (0, 1)], within=60, what="the first rows")
        admin.create_partitions({topic: MorePartitions(2)})
        admin.wait_for_leaders(topic)
        fill(broker, topic, [0, 3])
        wait_until(lambda: len(seen()) == 5, within=60, what="the rows of the new partition")
        assert seen()[2:] == [(1, 0), (1, 1), (1, 2)]
        admin.delete_topics([topic])
    with pytest.raises(Exception, match=f"topic '{topic}' partition 0 at offset 2, topic '{topic}' partition 1 at off"):
        query.awaitTermination(60)


def test_a_stream_from_deleted_records_fails_or_goes_on(
    spark: SparkSession, broker: Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic()
    fill(broker, topic, [2])
    assert run(spark, broker, tmp_path, topic, startingOffsets="earliest") == [[(0, 0), (0, 1)]]
    fill(broker, topic, [5])
    with Admin(broker.bootstrap_servers) as admin:
        admin.delete_records({TopicPartition(topic, 0): 4})
    with pytest.raises(
        Exception, match=f"topic '{topic}' partition 0 offsets 2 to 7 cannot be read: the log holds 4 to 7"
    ):
        run(spark, broker, tmp_path, topic)
    assert run(spark, broker, tmp_path, topic, failOnDataLoss="false") == [[(0, 4), (0, 5), (0, 6)]]


def test_a_refusal_of_a_stream_is_all_that_is_said(
    spark: SparkSession, broker: Broker, make_topic: MakeTopic, tmp_path: Path
) -> None:
    with pytest.raises(Exception, match="OptionError: endingOffsets: a stream has no end") as refused:
        run(spark, broker, tmp_path, make_topic(), endingOffsets="latest")
    assert "During handling of the above exception" not in str(refused.value)
