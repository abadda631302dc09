"""Streams from topic to topic through faults: the audit finds every record once, and each error says where.

Records keep their partition, so that the audit of the copy judges the sequences of the original.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pybroker.client import Admin, NewTopic
from pybroker.client.administration.topics import MorePartitions
from pybroker.testing import Broker
from pybroker_spark.audit.expected import Expected
from pybroker_spark.sink.ledger import PREFIX
from tests.support import faulty_sink
from tests.support.conditions import wait_until
from tests.support.processes import BrokerProcess
from tests.support.stamped import audited, send_stamped

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = [pytest.mark.java]

COUNT = 3_000
WITHIN = 60.0
ARROW_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
SETTINGS = {"kafka.delivery.timeout.ms": "3000", "kafka.request.timeout.ms": "1500", "kafka.max.block.ms": "1000"}


class Copy:
    """One query that copies a topic to another, started again and again from the same checkpoint."""

    def __init__(self, spark: SparkSession, servers: str, folder: Path, partitions: int = 2) -> None:
        self.spark, self.servers, self.checkpoint = spark, servers, folder / "checkpoint"
        self.source, self.target = f"in-{folder.name}", f"out-{folder.name}"
        self.options, self.happened = dict(SETTINGS), folder / "happened"
        with Admin(servers) as admin:
            admin.create_topics([NewTopic(name, partitions) for name in (self.source, self.target)])
            for name in (self.source, self.target):
                admin.wait_for_leaders(name)

    def send(self, partitions: int = 2, first: int = 0) -> list[Expected]:
        return send_stamped(self.servers, self.source, range(partitions), COUNT, first=first)

    def start(self, fault: str = "", *, available_now: bool = True) -> StreamingQuery:
        reader = self.spark.readStream.format("pybroker").option("kafka.bootstrap.servers", self.servers)
        reader = reader.option("subscribe", self.source).option("startingOffsets", "earliest")
        rows = reader.option("maxOffsetsPerTrigger", str(COUNT)).load().select("key", "value", "partition")
        writer = rows.writeStream.format(faulty_sink.NAME if fault else "pybroker")
        writer = writer.option("kafka.bootstrap.servers", self.servers).option("topic", self.target)
        if fault:
            writer = writer.option("fault", fault).option("happened", str(self.happened))
        writer = writer.option("checkpointLocation", str(self.checkpoint)).options(**self.options)
        return (writer.trigger(availableNow=True) if available_now else writer).start()

    def run(self, fault: str = "") -> str:
        """Copy all there is; the text of what it failed with, or nothing."""
        return failure(self.start(fault))

    def audit(self, expected: list[Expected]) -> str:
        committed = self.options.get("exactly.once") == "transactions"
        report = audited(self.servers, self.target, expected, committed=committed)
        assert report.is_exactly_once, report.as_table()
        assert report.reordered == 0, report.as_table()
        assert report.records == sum(e.acknowledged for e in expected)
        return report.as_table()


def has_begun(query: StreamingQuery) -> bool:
    return bool(query.recentProgress) or query.exception() is not None


def failure(query: StreamingQuery) -> str:
    from pyspark.errors import StreamingQueryException

    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        return str(error)
    return ""


@pytest.fixture
def streams(spark: SparkSession) -> Iterator[SparkSession]:
    """The session with small Arrow batches, so that a task has several."""
    spark.dataSource.register(faulty_sink.FaultySource)
    spark.conf.set(ARROW_ROWS, faulty_sink.BATCH_ROWS)
    yield spark
    for query in spark.streams.active:
        query.stop()
    spark.conf.unset(ARROW_ROWS)


@pytest.fixture
def copy(streams: SparkSession, broker: Broker, tmp_path: Path) -> Copy:
    return Copy(streams, broker.bootstrap_servers, tmp_path)


def test_a_worker_that_is_killed_in_the_middle_of_its_rows_loses_and_doubles_nothing(copy: Copy) -> None:
    expected = copy.send()
    assert copy.run("kill worker") == ""
    assert copy.happened.exists()
    copy.audit(expected)


def test_a_commit_that_raises_after_it_took_effect_writes_nothing_again(copy: Copy) -> None:
    expected = copy.send()
    assert "the commit raises after it took effect" in copy.run("raise in commit")
    assert copy.run() == ""
    copy.audit(expected)


def test_a_batch_that_is_stopped_half_written_is_finished_by_the_next_run(copy: Copy) -> None:
    expected = copy.send()
    assert "this run fails in every attempt" in copy.run("fail")
    assert 0 < audited(copy.servers, copy.target).records < COUNT
    assert copy.run() == ""
    copy.audit(expected)


@pytest.mark.parametrize(
    ("fault", "seen"), [("kill worker", 2 * COUNT), ("raise in commit", COUNT), ("fail", 0)], ids=str
)
def test_a_batch_by_transactions_is_read_whole_and_once(copy: Copy, fault: str, seen: int) -> None:
    copy.options["exactly.once"] = "transactions"
    expected = copy.send()
    happened = copy.run(fault)
    assert (happened == "") == (fault == "kill worker"), happened
    sent = sum(one.acknowledged for one in expected)
    assert sent == 2 * COUNT  # two micro-batches
    assert audited(copy.servers, copy.target, committed=True).records == seen
    expected = copy.send(first=COUNT)
    assert copy.run() == ""
    report = audited(copy.servers, copy.target, expected, committed=True)
    assert report.is_exactly_once, report.as_table()
    assert report.records == 2 * sent, report.as_table()


def test_tasks_that_finished_before_their_batch_failed_lose_nothing(
    streams: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """Their transactions stay open until the batch is repeated, which aborts them in an order of its own."""
    copy = Copy(streams, broker.bootstrap_servers, tmp_path, faulty_sink.TASKS)
    copy.options["exactly.once"] = "transactions"
    expected = copy.send(faulty_sink.TASKS)
    assert "the last task fails in every attempt" in copy.run("fail last")
    assert audited(copy.servers, copy.target, committed=True).records == 0
    assert copy.run() == ""
    report = audited(copy.servers, copy.target, expected, committed=True)
    assert report.is_exactly_once, report.as_table()
    assert report.records == faulty_sink.TASKS * COUNT


def test_partitions_added_while_streaming_are_copied_once(copy: Copy) -> None:
    expected = copy.send()
    query = copy.start(available_now=False)
    wait_until(functools.partial(has_begun, query), within=WITHIN, what="a first batch")
    with Admin(copy.servers) as admin:
        admin.create_partitions({name: MorePartitions(3) for name in (copy.source, copy.target)})
        for name in (copy.source, copy.target):
            admin.wait_for_leaders(name)
    expected += send_stamped(copy.servers, copy.source, [2], COUNT)
    query.processAllAvailable()
    query.stop()
    assert copy.run() == ""  # what metadata named too late is there now
    copy.audit(expected)


@pytest.mark.parametrize("exactly_once", ["ledger", "transactions"])
def test_a_broker_that_is_killed_and_comes_back_while_streaming(
    streams: SparkSession, tmp_path: Path, exactly_once: str
) -> None:
    with BrokerProcess(tmp_path / "data") as broker:
        copy = Copy(streams, broker.bootstrap_servers, tmp_path)
        copy.options["exactly.once"] = exactly_once
        expected = copy.send()
        for _ in range(2):
            query = copy.start(available_now=False)
            wait_until(functools.partial(has_begun, query), within=WITHIN, what="a batch")
            broker.kill()
            broker.start()
            query.stop()
        wait_until(lambda: copy.run() == "", within=WITHIN, what="a run to the end of the topic")
        copy.audit(expected)


def test_a_target_that_is_deleted_while_streaming_is_named_by_topic_partition_and_offset(
    streams: SparkSession, tmp_path: Path
) -> None:
    with Broker(auto_create_topics_enable=False) as broker:
        # One task: another that begins after the deletion can name the topic alone.
        copy = Copy(streams, broker.bootstrap_servers, tmp_path, partitions=1)
        copy.send(1)
        reason = copy.run("delete target")
        assert copy.happened.exists()
        assert copy.target in reason
        assert f"{copy.target}-0 from offset 0" in reason


def test_settings_that_break_the_promise_are_refused_before_anything_is_written(copy: Copy) -> None:
    copy.send()
    copy.options = {**SETTINGS, "kafka.acks": "1"}
    assert "kafka.acks=1: must be all in a streaming write" in copy.run()
    assert audited(copy.servers, copy.target).records == 0


def test_speculation_is_refused(copy: Copy) -> None:
    copy.send()
    context = copy.spark.sparkContext
    context.setLocalProperty("spark.speculation", "true")  # as tasks see the setting of a session
    try:
        assert "spark.speculation=true: two attempts of a task would write at once" in copy.run()
    finally:
        context.setLocalProperty("spark.speculation", "false")
    assert audited(copy.servers, copy.target).records == 0


def test_the_ledger_of_a_query_that_is_up_to_date_holds_its_last_batch_alone(copy: Copy) -> None:
    copy.send()
    assert copy.run() == ""
    query: Any = copy.start()
    query.awaitTermination()
    from pybroker_spark.sink.entries import Done
    from pybroker_spark.sink.ledger import Ledger

    ledger = Ledger(copy.servers, {}, query.id)
    assert ledger.topic == f"{PREFIX}{query.id}"
    (entry,) = ledger.read()
    ledger.close()
    assert isinstance(entry, Done)
    assert entry.batch == 1  # two batches: 0 and 1
