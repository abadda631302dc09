"""Topics in SQL: tables of Spark's catalog, views and INSERT, with librdkafka's view of what was written."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pybroker.client import Producer
from pybroker.testing import Broker
from tests.support import librdkafka

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.java

MakeTopic = Callable[..., str]
_names = itertools.count()


@pytest.fixture
def topic(broker: Broker, make_topic: MakeTopic) -> str:
    """A topic with the record k1=v1."""
    topic = make_topic()
    with Producer(broker.bootstrap_servers) as producer:
        producer.send(topic, b"v1", key=b"k1")
    return topic


@pytest.fixture
def name(spark: SparkSession) -> Iterator[str]:
    """A table's name; the table is dropped at the end."""
    name = f"table_{next(_names)}"
    yield name
    spark.sql(f"DROP TABLE IF EXISTS {name}")


def options(broker: Broker, topic: str, **more: str) -> str:
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic, "topic": topic, **more}
    return "OPTIONS (" + ", ".join(f"`{key}` '{value}'" for key, value in given.items()) + ")"


def pairs(spark: SparkSession, query: str) -> list[tuple[str, str]]:
    return [
        tuple(row) for row in spark.sql(f"SELECT cast(key AS string), cast(value AS string) FROM {query}").collect()
    ]


def written(broker: Broker, topic: str) -> list[tuple[str, str]]:
    messages = librdkafka.read_partition(broker.bootstrap_servers, topic, 0)
    return [((m.key() or b"").decode(), (m.value() or b"").decode()) for m in messages]


def test_a_table_is_read_and_written(spark: SparkSession, broker: Broker, topic: str, name: str) -> None:
    spark.sql(f"CREATE TABLE {name} USING pybroker {options(broker, topic)}")
    assert pairs(spark, name) == [("k1", "v1")]
    spark.sql(f"INSERT INTO {name} (key, value) VALUES (cast('k2' AS binary), cast('v2' AS binary))")
    assert written(broker, topic) == [("k1", "v1"), ("k2", "v2")]
    assert pairs(spark, f"{name} WHERE offset >= 1") == [("k2", "v2")]
    ends = f'{{"{topic}":{{"0":1}}}}'
    assert pairs(spark, f"{name} WITH (`endingOffsets` = '{ends}')") == [("k1", "v1")]


def test_a_table_of_chosen_columns_takes_frames_and_streams(
    spark: SparkSession, broker: Broker, topic: str, name: str, tmp_path: Path
) -> None:
    spark.sql(f"CREATE TABLE {name} USING pybroker {options(broker, topic, columns='key,value')}")
    assert spark.table(name).columns == ["key", "value"]
    spark.table(name).write.insertInto(name)
    stream = spark.readStream.option("startingOffsets", "earliest").table(name)
    writer = stream.writeStream.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    writer.toTable(name).awaitTermination()
    assert written(broker, topic) == [("k1", "v1")] * 4


def test_the_catalog_creates_a_table(spark: SparkSession, broker: Broker, topic: str, name: str) -> None:
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": topic}
    assert spark.catalog.createTable(name, source="pybroker", schema=None, description=None, **given).count() == 1


def test_a_temporary_view_is_read_and_written(spark: SparkSession, broker: Broker, topic: str, name: str) -> None:
    spark.sql(f"CREATE TEMPORARY VIEW {name} USING pybroker {options(broker, topic)}")
    try:
        spark.sql(f"INSERT INTO {name} (key, value) VALUES (cast('k2' AS binary), cast('v2' AS binary))")
        assert written(broker, topic) == [("k1", "v1"), ("k2", "v2")]
        assert pairs(spark, name) == [("k1", "v1"), ("k2", "v2")]
    finally:
        spark.catalog.dropTempView(name)


def test_a_frame_that_was_read_from_a_table_is_written_where_its_options_say(
    spark: SparkSession, broker: Broker, topic: str, make_topic: MakeTopic, name: str
) -> None:
    other = make_topic()
    spark.sql(f"CREATE TABLE {name} USING pybroker {options(broker, topic)}")
    writer = spark.table(name).select("key", "value").write.format("pybroker").mode("append")
    writer.option("kafka.bootstrap.servers", broker.bootstrap_servers).option("topic", other).save()
    assert (written(broker, other), written(broker, topic)) == ([("k1", "v1")], [("k1", "v1")])


@pytest.mark.parametrize("columns", ["(key binary, value binary) ", ""], ids=["columns", "as select"])
def test_a_table_whose_options_spark_loses_says_how_it_is_created(
    spark: SparkSession, broker: Broker, topic: str, name: str, columns: str
) -> None:
    query = "" if columns else " AS SELECT cast('k' AS binary) AS key, cast('v' AS binary) AS value"

    def create_and_read() -> None:
        spark.sql(f"CREATE TABLE {name} {columns}USING pybroker {options(broker, topic)}{query}")
        spark.sql(f"SELECT * FROM {name}").collect()

    with pytest.raises(Exception, match=r"no options are given, .* OPTIONS \(columns 'key,value', \.\.\.\)"):
        create_and_read()
    assert written(broker, topic) == [("k1", "v1")]


def test_a_table_keeps_no_secret(spark: SparkSession, broker: Broker, topic: str, name: str) -> None:
    secret = {"kafka.sasl.jaas.config": "abc"}
    with pytest.raises(Exception, match=r"kafka.sasl.jaas.config: a table's options are kept in its schema"):
        spark.sql(f"CREATE TABLE {name} USING pybroker {options(broker, topic, **secret)}")
