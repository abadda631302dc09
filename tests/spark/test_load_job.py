"""Claims about `pybroker_spark.load` as a Spark job: what clients do in its tasks, and what is left of lost ones."""

from __future__ import annotations

import importlib
import itertools
import json
import os
import struct
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pybroker.client import Admin, Fetcher, NewTopic, TopicPartition
from pybroker.testing import Broker
from pybroker_spark.load import (
    CONFLUENT,
    Board,
    ConsumerPlan,
    LoadError,
    LoadPlan,
    ProducerPlan,
    Result,
    Step,
    TooFewSlotsError,
    run,
    slots,
)
from tests.support.repository import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.java


def make_topic(broker: Broker, name: str, partitions: int = 2) -> str:
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, partitions, 1)])
        admin.wait_for_leaders(name)
    return name


def producer(broker: Broker, topic: str, **changed: object) -> ProducerPlan:
    plan: dict[str, object] = {
        "bootstrap_servers": broker.bootstrap_servers,
        "properties": {"linger.ms": "1"},
        "topic": topic,
        "partitions": (0, 1),
        "record_size": 50,
        "records": 1000,
        "stamped": True,
    }
    return ProducerPlan(**{**plan, **changed})  # type: ignore[arg-type]


def consumer(broker: Broker, topic: str, partitions: Sequence[int] = (0, 1), **changed: object) -> ConsumerPlan:
    plan: dict[str, object] = {
        "bootstrap_servers": broker.bootstrap_servers,
        "properties": {},
        "topic": topic,
        "assigned": {(topic, index): 0 for index in partitions},
        "stamped": True,
    }
    return ConsumerPlan(**{**plan, **changed})  # type: ignore[arg-type]


def load(spark: SparkSession, *clients: ProducerPlan | ConsumerPlan, tasks: int = 2, interval_s: float = 0.2) -> Result:
    return run(spark, LoadPlan(run=7, clients=clients, tasks=tasks, interval_s=interval_s))


def test_two_tasks_write_what_they_say_and_the_log_holds_it(spark: SparkSession, broker: Broker) -> None:
    topic = make_topic(broker, "load-two")
    result = load(spark, producer(broker, topic), producer(broker, topic, warm_up_records=300))
    assert result.is_whole()
    total = result.total("producer")
    assert (total.records, total.bytes, total.failed, total.latencies.count) == (2000, 100_000, 0, 2000)
    assert result.steady("producer").records == 1700
    assert {(a.producer, a.topic) for a in result.acknowledged()} == {(70000, topic), (70001, topic)}
    assert sum(a.acknowledged for a in result.acknowledged()) == 2000
    written: dict[tuple[int, int], list[int]] = {}
    with Fetcher(broker.bootstrap_servers) as fetcher:
        fetcher.assign({TopicPartition(topic, index): 0 for index in range(2)})
        while sum(map(len, written.values())) < 2000 and (records := fetcher.poll(60)):
            for record in records:
                number, sequence, _ = struct.unpack(">QQq", (record.value or b"")[:24])
                written.setdefault((number, record.partition), []).append(sequence)
    assert {where: len(sequences) for where, sequences in written.items()} == {
        (each.producer, each.partition): each.acknowledged for each in result.acknowledged()
    }
    assert all(sequences == list(range(len(sequences))) for sequences in written.values())


def test_consumers_read_all_that_producers_beside_them_write(spark: SparkSession, broker: Broker) -> None:
    topic = make_topic(broker, "load-both")
    paced = producer(broker, topic, steps=(Step(rate=2000),), keys=20, skew=1.0)
    result = load(spark, paced, paced, consumer(broker, topic, [0]), consumer(broker, topic, [1]))
    assert [client.state for client in result.clients] == ["done"] * 4
    read = result.total("consumer")
    assert (read.records, read.failed, read.latencies.count) == (2000, 0, 2000)
    assert result.total("producer").seconds > 0.4, "1000 records at 2000 a second take half a second"
    with Fetcher(broker.bootstrap_servers) as fetcher:
        fetcher.assign({TopicPartition(topic, index): 0 for index in range(2)})
        keys: set[bytes | None] = set()
        seen = 0
        while seen < 2000 and (records := fetcher.poll(60)):
            keys.update(record.key for record in records)
            seen += len(records)
    assert keys <= {b"%d" % number for number in range(20)}
    assert len(keys) > 10


def test_members_of_a_group_share_what_there_is(spark: SparkSession, broker: Broker) -> None:
    topic = make_topic(broker, "load-group")
    load(spark, producer(broker, topic), tasks=1)
    member = ConsumerPlan(
        bootstrap_servers=broker.bootstrap_servers,
        properties={"group.id": "load", "auto.offset.reset": "earliest"},
        topic=topic,
        group_topics=(topic,),
    )
    result = run(spark, LoadPlan(run=7, clients=(member, member), tasks=2, interval_s=0.2, group_records=1000))
    assert result.total("consumer").records == 1000
    assert [client.state for client in result.clients] == ["done", "done"]


def test_a_client_that_cannot_begin_ends_the_load_with_its_reason(spark: SparkSession, broker: Broker) -> None:
    topic = make_topic(broker, "load-unable")
    unable = producer(broker, "bad topic", properties={"max.block.ms": "300"})
    with pytest.raises(LoadError, match=r"client 1 cannot begin: .*bad topic"):
        load(spark, producer(broker, topic), unable)


def test_a_client_that_fails_is_reported_and_the_others_go_on(spark: SparkSession, broker: Broker) -> None:
    topic = make_topic(broker, "load-fails")
    large = producer(broker, topic, record_size=2000, properties={"max.request.size": "1000"})
    result = load(spark, producer(broker, topic), large)
    well, ill = result.clients
    assert (well.state, well.records) == ("done", 1000)
    assert ill.state == "failed"
    assert "max.request.size" in ill.reason
    assert not result.is_whole()


def test_producers_in_transactions_commit_what_they_say(spark: SparkSession, broker: Broker) -> None:
    topic = make_topic(broker, "load-transactions")
    ids = [{"linger.ms": "1", "transactional.id": f"load-{number}"} for number in range(2)]
    paced = {"steps": (Step(rate=2000),), "transaction_s": 0.1}
    other = producer(broker, topic, properties=ids[1], stamped=False, engine=CONFLUENT, **paced)
    result = load(spark, producer(broker, topic, properties=ids[0], **paced), other)
    assert [(client.state, client.records) for client in result.clients] == [("done", 1000)] * 2, result.clients
    with Fetcher(broker.bootstrap_servers, {"isolation.level": "read_committed"}) as fetcher:
        fetcher.assign({TopicPartition(topic, index): 0 for index in range(2)})
        offsets: dict[int, list[int]] = {0: [], 1: []}
        while sum(map(len, offsets.values())) < 2000 and (records := fetcher.poll(60)):
            for record in records:
                offsets[record.partition].append(record.offset)
    assert sum(map(len, offsets.values())) == 2000
    gaps = sum(after - before - 1 for each in offsets.values() for before, after in itertools.pairwise(each))
    assert gaps > 4, "the markers of several transactions stand between the records"


def test_a_producer_that_is_fenced_ends_as_failed_with_its_reason(spark: SparkSession, broker: Broker) -> None:
    topic = make_topic(broker, "load-fenced")
    same = {"transactional.id": "load-fenced"}
    result = load(spark, *[producer(broker, topic, properties=same, steps=(Step(rate=2000),))] * 2)
    fenced, well = sorted(result.clients, key=lambda client: client.state, reverse=True)
    assert (well.state, well.records, fenced.state) == ("done", 1000, "failed")
    assert "ProducerFencedError" in fenced.reason
    assert not result.is_whole()


def test_too_few_slots_are_an_error_at_once_with_what_to_set(spark: SparkSession, broker: Broker) -> None:
    jobs = spark.sparkContext.statusTracker()
    before = set(jobs.getJobIdsForGroup())
    with pytest.raises(TooFewSlotsError, match=r"needs 3 slots at once.* has 2: set --tasks 2, or .*local\[3\]"):
        load(spark, *[producer(broker, "load-two")] * 3, tasks=3)
    assert set(jobs.getJobIdsForGroup()) <= before, "Spark is not asked first: it waits for slots before it refuses"


def test_sparks_own_refusal_of_too_many_tasks_says_what_to_set_too(
    spark: SparkSession, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots, "require_slots", lambda _context, _tasks: None)
    with pytest.raises(TooFewSlotsError, match=r"needs 3 slots at once.*: set --tasks lower, or .*local\[3\]"):
        load(spark, *[producer(broker, "load-two")] * 3, tasks=3)


def test_an_end_that_is_asked_for_leaves_what_was_measured(spark: SparkSession, broker: Broker) -> None:
    topic = make_topic(broker, "load-interrupted")

    interrupted: list[int] = []

    def interrupt(board: Board, _elapsed_s: float) -> None:
        if not interrupted and board.records("producer") > 100:
            interrupted.append(board.records("producer"))
            raise KeyboardInterrupt

    endless = producer(broker, topic, records=None, steps=(Step(rate=1000),))
    plan = LoadPlan(run=7, clients=(endless,), tasks=1, interval_s=0.2)
    result = run(spark, plan, interrupt)
    assert result.reason == "interrupted"
    (client,) = result.clients
    assert (client.state, client.reason) == ("stopped", "interrupted")
    assert result.total("producer").records == sum(a.acknowledged for a in result.acknowledged()) > 100


LOSING = textwrap.dedent("""
    import json, os, signal, sys
    from pybroker_spark import session
    from pybroker_spark.load import LoadPlan, ProducerPlan, Step, run

    def kill_one(board, elapsed_s):
        if not killed and all(client.records for client in board.clients):
            killed.append(pids[1])
            os.kill(pids[1], signal.SIGKILL)

    def step(self, task, message):
        if message["type"] == "hello":
            pids[task] = message["pid"]
        return known(self, task, message)

    from pybroker_spark.load import Board
    killed, pids, known = [], {}, Board.step
    Board.step = step
    spark = session("lost", master=sys.argv[1])
    spark.sparkContext.setLogLevel("OFF")
    client = ProducerPlan(bootstrap_servers=sys.argv[2], properties={}, topic="load-lost", partitions=(0,),
                          record_size=50, steps=(Step(seconds=60, rate=500),), stamped=True)
    result = run(spark, LoadPlan(run=7, clients=(client, client), tasks=2, interval_s=0.2), kill_one)
    print(json.dumps({"clients": [[c.state, c.reason, c.records] for c in result.clients], "reason": result.reason,
                      "total": result.total("producer").records}))
    spark.stop()
""")


def test_a_killed_task_is_lost_with_what_it_had_measured_and_the_others_say_what_they_have(broker: Broker) -> None:
    make_topic(broker, "load-lost", 1)
    words = [sys.executable, "-c", LOSING, "local[2]", broker.bootstrap_servers]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, capture_output=True, text=True, timeout=350, check=False, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    shown = json.loads(done.stdout.splitlines()[-1])
    survivor, lost = shown["clients"]
    assert (survivor[0], survivor[1]) == ("stopped", "task 1 was lost")
    assert lost[0] == "lost"
    assert "its connection broke" in lost[1]
    assert survivor[2] > 0
    assert lost[2] > 0
    assert shown["total"] == survivor[2] + lost[2]
    assert shown["reason"] == "task 1 was lost"


def test_a_task_that_cannot_be_imported_says_what_is_missing(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "of_the_driver_alone.py").write_text("def task(plan, address, rows):\n    yield from rows\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("pybroker_spark.load.job._spark_task", importlib.import_module("of_the_driver_alone").task)
    with pytest.raises(LoadError, match=r"^ModuleNotFoundError: No module named 'of_the_driver_alone' \(Job aborted"):
        load(spark, producer(broker, make_topic(broker, "load-import")))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_load_begins_when_its_groups_have_all_their_members(
    spark: SparkSession, broker: Broker, protocol: str
) -> None:
    topic = make_topic(broker, f"joined-{protocol}")
    member = ConsumerPlan(
        bootstrap_servers=broker.bootstrap_servers,
        properties={"group.id": topic, "group.protocol": protocol, "auto.offset.reset": "earliest"},
        topic=topic,
        group_topics=(topic,),
        joins_before_start=True,
        stamped=True,
    )
    result = run(spark, LoadPlan(run=1, clients=(producer(broker, topic), member, member), tasks=2))
    consumers = result.of_role("consumer")
    assert [standing.rebalance_s for standing in consumers] == [0.0, 0.0], "no rebalance after the start"
    assert sum(standing.records for standing in consumers) == 1000
