"""One broker of three is killed while Spark loads, reads, writes and audits: nothing fails, and nothing is lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from pybroker.client import LATEST, Admin, NewTopic, TopicPartition
from pybroker.testing import Cluster
from pybroker_spark.audit import job
from pybroker_spark.audit.expected import Expected
from pybroker_spark.audit.report import Report
from pybroker_spark.load import ConsumerPlan, LoadPlan, ProducerPlan, Step, run
from pybroker_spark.source.options import parse_read, parse_write
from pybroker_spark.source.planning import Planner
from pybroker_spark.source.writer import BatchWriter
from tests.support.conditions import wait_until
from tests.support.stamped import audited, send_stamped

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.java, pytest.mark.process]

COUNT = 2_000
WITHIN = 120.0
QUICK = {"retry.backoff.max.ms": "500"}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, default_replication_factor=3, min_insync_replicas=2) as running:
        yield running


def make_topics(cluster: Cluster, *names: str, partitions: int = 3) -> None:
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, partitions, 3) for name in names])
        for name in names:
            admin.wait_for_leaders(name)
    for name in names:
        for partition in range(partitions):
            cluster.wait_in_sync(name, partition)


def test_a_load_runs_through_the_death_of_a_broker_and_says_so(spark: SparkSession, cluster: Cluster) -> None:
    make_topics(cluster, "load")
    plan = ProducerPlan(
        bootstrap_servers=cluster.bootstrap_servers,
        properties={"linger.ms": "1", **QUICK},
        topic="load",
        partitions=(0, 1, 2),
        record_size=50,
        records=9_000,
        steps=(Step(rate=1_000),),
        stamped=True,
    )
    reader = ConsumerPlan(
        bootstrap_servers=cluster.bootstrap_servers,
        properties={**QUICK},
        topic="load",
        assigned={("load", index): 0 for index in range(3)},
        stamped=True,
    )
    killed: list[int] = []

    def disturb() -> None:
        with Admin(cluster.bootstrap_servers) as admin:
            wait_until(
                lambda: sum(it.offset for it in admin.list_offsets(dict.fromkeys(plan_partitions, -1)).values()) > 500,
                within=WITHIN,
                what="the load runs",
            )
        killed.append(cluster.leader("load", 0))
        cluster.kill(killed[0])
        cluster.wait_for_partition("load", 0, lambda it: it.leader not in (-1, killed[0]))
        cluster.start(killed[0])

    plan_partitions = [TopicPartition("load", index) for index in range(3)]
    disturber = threading.Thread(target=disturb)
    disturber.start()
    result = run(spark, LoadPlan(run=7, clients=(plan, reader), tasks=2, interval_s=0.2))
    disturber.join(WITHIN)

    assert killed
    assert result.is_whole(), [client.reason for client in result.clients]
    met = result.disturbance("producer")
    assert met.leader_changes >= 1
    assert 0.0 < met.gap_s < WITHIN
    assert result.disturbance("consumer").leader_changes >= 1
    assert (result.total("producer").records, result.total("consumer").records) == (9_000, 9_000)
    acknowledged = [Expected(a.topic, a.partition, a.producer, a.acknowledged) for a in result.acknowledged()]
    report = audited(cluster.bootstrap_servers, "load", acknowledged)
    assert report.is_exactly_once, report.as_table()
    assert (report.records, report.reordered) == (9_000, 0)


def test_a_query_reads_and_writes_through_the_death_of_a_broker(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    make_topics(cluster, "in", "out")
    send_stamped(cluster.bootstrap_servers, "in", [0, 1, 2], COUNT)
    reader = spark.readStream.format("pybroker").option("kafka.bootstrap.servers", cluster.bootstrap_servers)
    reader = reader.option("subscribe", "in").option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 600)
    writer = reader.load().select("key", "value", "partition").writeStream.format("pybroker").option("topic", "out")
    writer = writer.option("kafka.bootstrap.servers", cluster.bootstrap_servers)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(processingTime="50 milliseconds").start()
    try:

        def batches() -> int:
            if (error := query.exception()) is not None:
                raise AssertionError(str(error))
            progress = query.lastProgress
            return -1 if progress is None else int(progress["batchId"])

        wait_until(lambda: batches() >= 1, within=WITHIN, what="a second batch")
        victim = cluster.leader("out", 0)
        cluster.kill(victim)
        at_death = batches()
        wait_until(lambda: batches() > at_death + 1, within=WITHIN, what="batches without that broker")
        cluster.start(victim)
        expected = send_stamped(cluster.bootstrap_servers, "in", [0, 1, 2], COUNT, first=COUNT)
        query.processAllAvailable()
    finally:
        query.stop()
    report = audited(cluster.bootstrap_servers, "out", expected)
    assert report.is_exactly_once, report.as_table()
    assert report.records == 6 * COUNT


def test_plans_writes_and_audits_say_that_leaders_moved(
    spark: SparkSession, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    make_topics(cluster, "moved", partitions=1)
    moves: list[int] = []

    def move() -> None:
        leader = cluster.leader("moved", 0)
        moves.append(leader % 3 + 1)
        cluster.move_leader("moved", 0, moves[-1])

    where = {"kafka.bootstrap.servers": cluster.bootstrap_servers}
    rows = pa.record_batch({"value": pa.array([b"x"] * 10, pa.binary())})

    def batches() -> Iterator[pa.RecordBatch]:
        yield rows
        wait_until(lambda: ends(cluster, "moved") == 10, within=WITHIN, what="the first rows are written")
        move()
        yield rows

    writer = BatchWriter(parse_write({**where, "topic": "moved"}), ["value"])
    with Planner(parse_read({**where, "subscribe": "moved"})) as planner:
        planner.partitions()
        written = writer.write(batches())
        writer.commit([written, None])
        planner.partitions()
        assert planner.leader_changes == 1
    assert written.rows == 20
    assert written.disturbance.leader_changes == 1
    planned, wrote = sorted(caplog.messages[-2:], key=lambda line: "batch" in line)
    assert planned.startswith("leaders changed")
    assert planned.endswith(f": moved-0 has leader {moves[0]} (epoch 0 to 1)")
    assert wrote.startswith("the batch was written through 1 change of leaders")

    send_stamped(cluster.bootstrap_servers, "moved", [0], COUNT)
    counted = job.audit

    def disturbed(records: DataFrame, expected: Sequence[Expected] = ()) -> Report:
        report = counted(records, expected)
        move()
        return report

    monkeypatch.setattr(job, "audit", disturbed)
    report = job.audit_topics(spark, cluster.bootstrap_servers, ["moved"])
    assert (report.records, report.unstamped, report.leader_changes) == (COUNT, 20, 1)
    assert "leaders changed once while it was read" in report.as_table()


def ends(cluster: Cluster, topic: str) -> int:
    """The end of a topic's first partition."""
    with Admin(cluster.bootstrap_servers) as admin:
        (listed,) = admin.list_offsets({TopicPartition(topic, 0): LATEST}).values()
    return listed.offset
