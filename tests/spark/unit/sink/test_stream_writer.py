"""Commits of a streaming write, called as Spark calls them: with the messages of the tasks that won, and again."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from pybroker.testing import Broker
from pybroker_spark.sink.attempt import Share
from pybroker_spark.sink.entries import Begun, Done, TopicMark
from pybroker_spark.sink.errors import SinkError, SplitError
from pybroker_spark.sink.ledger import Ledger, close_ledger
from pybroker_spark.sink.settings import forced_properties
from pybroker_spark.sink.stream_writer import StreamWriter, WrittenShare, make
from pybroker_spark.source.errors import OptionError

SCHEMA = StructType([StructField("value", BinaryType())])
QUERY = uuid.uuid4().hex


@pytest.fixture
def writer(broker: Broker) -> Iterator[StreamWriter]:
    yield make({"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "out"}, SCHEMA)
    close_ledger()


@pytest.fixture
def ledger(broker: Broker) -> Iterator[Ledger]:
    ledger = Ledger(broker.bootstrap_servers, {}, f"{QUERY}-{uuid.uuid4().hex[:6]}")
    yield ledger
    ledger.close()


def message(ledger: Ledger, batch: int, task: int, *, begun: bool = True) -> WrittenShare:
    query = ledger.topic.removeprefix("__spark_sink_")
    return WrittenShare(Share(query, batch, task), begun, False, 5 * begun, 0, {"out": "id"} if begun else {})


def test_what_is_forced_upon_the_rows_producer_is_no_news_of_the_ledgers_clients(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    Ledger(broker.bootstrap_servers, forced_properties({"linger.ms": "5", "batch.size": "100"}), "quiet").close()
    assert caplog.messages == []


def test_a_read_of_the_ledger_waits_for_no_fetch_behind_its_end(broker: Broker) -> None:
    """A Fetch that is delayed at the broker for two minutes would outlast the 60 s that a read has."""
    slow = {"fetch.max.wait.ms": "120000", "fetch.min.bytes": "1000000"}
    ledger = Ledger(broker.bootstrap_servers, slow, f"waits-{uuid.uuid4().hex}")
    try:
        ledger.append(Done(1))
        assert [ledger.read() for _ in range(3)] == [[Done(1)]] * 3
    finally:
        ledger.close()


def test_a_commit_that_is_repeated_changes_nothing(writer: StreamWriter, ledger: Ledger) -> None:
    ledger.append(Begun(7, 0, 1, 0))
    for _ in range(3):
        writer.commit([message(ledger, 7, 0), None, message(ledger, 7, 1, begun=False)], 7)
    assert ledger.read() == [Done(7, {"out": "id"})]


def test_a_batch_without_rows_is_not_noted(writer: StreamWriter, ledger: Ledger) -> None:
    ledger.append(Done(6))
    writer.commit([message(ledger, 7, 0, begun=False)], 7)
    assert ledger.read() == [Done(6)]


def test_a_batch_that_other_tasks_began_is_refused_with_where_they_wrote(writer: StreamWriter, ledger: Ledger) -> None:
    for task in range(4):
        ledger.append(Begun(7, task, task, 0, {"out": TopicMark("id", (10, 20))}))
    with pytest.raises(SplitError, match=r"batch 7: task 2, 3 began it \(out-0 from offset 10, out-1 from offset 20\)"):
        writer.commit([message(ledger, 7, 0), message(ledger, 7, 1)], 7)
    assert Done(7) not in ledger.read()


def test_what_began_earlier_batches_is_no_hindrance(writer: StreamWriter, ledger: Ledger) -> None:
    ledger.append(Begun(6, 9, 1, 0))
    ledger.append(Done(6))
    ledger.append(Begun(7, 0, 1, 0))
    writer.commit([message(ledger, 7, 0)], 7)
    assert ledger.read() == [Done(7, {"out": "id"})]


def test_a_write_outside_of_a_task_is_refused(writer: StreamWriter) -> None:
    with pytest.raises(SinkError, match="runs in a task of Spark"):
        writer.write(iter(()))


def test_options_and_columns_are_those_of_the_batch_write() -> None:
    with pytest.raises(OptionError, match="topic option required"):
        make({"kafka.bootstrap.servers": "127.0.0.1:1"}, SCHEMA)
    with pytest.raises(OptionError, match=r"kafka\.enable\.idempotence=false: must be true"):
        make({"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t", "kafka.enable.idempotence": "false"}, SCHEMA)
