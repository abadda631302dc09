"""Queries while the broker is away for longer than three seconds: ours go on as those of Spark's Kafka connector do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pybroker.client import Admin, Consumer, NewTopic, TopicPartition
from pybroker.testing import Broker
from tests.support.conditions import wait_until
from tests.support.knocks import Knocks
from tests.support.processes import BrokerProcess
from tests.support.stamped import audited, send_stamped

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = [pytest.mark.java]

COUNT = 1_000
WITHIN = 120.0
KNOCKS = 40
"""Tries to connect. The clients of one query make about two a second, so that this is more than three seconds."""
SOURCE = "in"


class Queries:
    """Four queries of ours, and the connector's own; each writes to a topic by its name."""

    def __init__(self, spark: SparkSession, servers: str, folder: Path) -> None:
        self.spark, self.servers, self.folder = spark, servers, folder
        self.running: dict[str, StreamingQuery] = {}

    def start(self) -> None:
        self._start("ours", self._read("pybroker"), "pybroker")
        self._start("source", self._read("pybroker"), "noop")
        self._start("sink", self._numbers(), "pybroker")
        self._start("mixed", self._read("kafka"), "pybroker")
        self._start("connector", self._read("kafka"), "kafka")

    def _read(self, kind: str) -> Any:
        reader = self.spark.readStream.format(kind).option("kafka.bootstrap.servers", self.servers)
        return reader.option("subscribe", SOURCE).option("startingOffsets", "earliest").load()

    def _numbers(self) -> Any:
        return self.spark.readStream.format("rate").load().selectExpr("cast(value as string) as value")

    def _start(self, name: str, rows: Any, kind: str) -> None:
        columns = [column for column in ("key", "value", "partition") if column in rows.columns]
        writer = rows.select(*columns).writeStream.format(kind).option("kafka.bootstrap.servers", self.servers)
        writer = writer.option("topic", name).option("checkpointLocation", str(self.folder / name))
        self.running[name] = writer.trigger(processingTime="200 milliseconds").start()
        # One after the other: Spark gives each source's Python process ten seconds to start.
        wait_until(lambda: self.batches()[name] >= 0, within=WITHIN, what=f"a batch of {name}")

    def batches(self) -> dict[str, int]:
        """The number of each query's last batch; raises what ended a query."""
        found = {}
        for name, query in self.running.items():
            if (error := query.exception()) is not None:
                raise AssertionError(f"{name}: {error}")
            progress = query.lastProgress
            found[name] = -1 if progress is None else int(progress["batchId"])
        return found


@pytest.fixture
def away(connector: SparkSession, tmp_path: Path) -> Iterator[tuple[Queries, BrokerProcess]]:
    with BrokerProcess(tmp_path / "data") as broker:
        queries = Queries(connector, broker.bootstrap_servers, tmp_path)
        yield queries, broker
        for query in queries.running.values():
            query.stop()


def test_queries_go_on_after_a_broker_was_away(away: tuple[Queries, BrokerProcess]) -> None:
    queries, broker = away
    topics = [SOURCE, "ours", "sink", "mixed", "connector"]
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, 2) for name in topics])
        for name in topics:
            admin.wait_for_leaders(name)
    send_stamped(broker.bootstrap_servers, SOURCE, [0, 1], COUNT)
    queries.start()

    broker.kill()
    assert broker.port is not None
    with Knocks(broker.port) as knocks:
        wait_until(lambda: knocks.count >= KNOCKS, within=WITHIN, what=lambda: f"{knocks.count} tries to connect")
    broker.start()

    expected = send_stamped(broker.bootstrap_servers, SOURCE, [0, 1], COUNT, first=COUNT)
    before = queries.batches()
    wait_until(lambda: queries.batches()["sink"] > before["sink"], within=WITHIN, what="another batch of the sink")
    for name in ("ours", "mixed"):
        queries.running[name].processAllAvailable()
        report = audited(broker.bootstrap_servers, name, expected)
        assert report.is_exactly_once, report.as_table()
    queries.running["source"].processAllAvailable()
    read = sum(int(progress["numInputRows"]) for progress in queries.running["source"].recentProgress)
    assert read == 4 * COUNT
    queries.running["connector"].processAllAvailable()
    assert audited(broker.bootstrap_servers, "connector", expected).lost == 0


def test_a_sink_goes_on_when_the_broker_has_closed_its_connections(spark: SparkSession, tmp_path: Path) -> None:
    """As after `connections.max.idle.ms`: a worker keeps the ledger's clients from batch to batch."""
    lines = tmp_path / "lines"
    lines.mkdir()
    with Broker() as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("idle")])
            admin.wait_for_leaders("idle")
        writer = spark.readStream.text(str(lines)).writeStream.format("pybroker").option("topic", "idle")
        writer = writer.option("kafka.bootstrap.servers", broker.bootstrap_servers)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        try:
            for number in range(3):
                (lines / f"{number}.txt").write_text(f"{number}\n")
                query.processAllAvailable()
                broker.close_connections()
        finally:
            query.stop()
        with Consumer(broker.bootstrap_servers, {"auto.offset.reset": "earliest"}) as consumer:
            consumer.assign([TopicPartition("idle", 0)])
            values: list[bytes | None] = []
            while len(values) < 3:
                values += [record.value for record in consumer.poll(1.0)]
    assert values == [b"0", b"1", b"2"]
