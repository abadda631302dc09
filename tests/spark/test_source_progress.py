"""How far a query is behind, computed from its progress, beside the metrics of Spark's Kafka connector."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pybroker_spark
from pybroker.client import Producer
from pybroker.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import SourceProgress

pytestmark = pytest.mark.java


def progress(spark: SparkSession, broker: Broker, topic: str, form: str, checkpoint: Path) -> list[SourceProgress]:
    reader = spark.readStream.format(form).option("kafka.bootstrap.servers", broker.bootstrap_servers)
    reader = reader.options(subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="20")
    writer = reader.load().writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return [one.sources[0] for one in query.recentProgress]


def test_metrics_are_those_of_the_connector(
    connector: SparkSession, broker: Broker, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = make_topic(3)
    with Producer(broker.bootstrap_servers) as producer:
        for partition, count in enumerate((0, 10, 50)):
            for _ in range(count):
                producer.send(topic, b"x", partition=partition)
    theirs = progress(connector, broker, topic, "kafka", tmp_path / "kafka")
    ours = progress(connector, broker, topic, "pybroker", tmp_path / "pybroker")
    found = [pybroker_spark.source_metrics(source) for source in ours]
    assert found == [source.metrics for source in theirs]
    assert found[0]["maxOffsetsBehindLatest"] != found[0]["minOffsetsBehindLatest"]
    assert [source.metrics for source in ours] == [{}] * len(ours), "Spark takes them by now: report them there"
