"""Streams in output mode `update`, written by key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pybroker_spark
from pybroker.testing import Broker
from tests.support import librdkafka

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.java


def test_the_newest_record_of_each_key_is_its_count(
    spark: SparkSession, broker: Broker, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic, lines = make_topic(1), tmp_path / "lines"
    lines.mkdir()
    options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": topic}
    for name, text in (("a.txt", "tea\ncoffee\ntea\n"), ("b.txt", "tea\nmilk\n")):
        (lines / name).write_text(text)
        counts = spark.readStream.text(str(lines)).groupBy("value").count()
        rows = counts.selectExpr("value AS key", "cast(count AS string) AS value")
        writer = pybroker_spark.write_updates(rows, options).option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()
    messages = librdkafka.read_partition(broker.bootstrap_servers, topic, 0)
    assert {m.key(): m.value() for m in messages} == {b"tea": b"3", b"coffee": b"1", b"milk": b"1"}
    assert sum(m.key() == b"coffee" for m in messages) == 1, "what has not changed is not written again"


def test_spark_refuses_the_mode_for_the_format(
    spark: SparkSession, broker: Broker, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    """Once it does not, `write_updates` has had its time."""
    rows = spark.readStream.format("rate").load().groupBy("value").count().selectExpr("'k' AS key", "'v' AS value")
    writer = rows.writeStream.format("pybroker").outputMode("update").option("topic", make_topic(1))
    writer = writer.option("kafka.bootstrap.servers", broker.bootstrap_servers)
    with pytest.raises(Exception, match=r"pybroker does not support Update mode"):
        writer.option("checkpointLocation", str(tmp_path)).start().awaitTermination()
