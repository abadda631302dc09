"""The Spark tools without Spark: what they refuse, and what they print and write of a load that is over."""

from __future__ import annotations

import argparse
import json
import sys
from argparse import Namespace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybench import main, spark_output, spark_producer_perf
from pybench.load_html import write_html
from pybench.spark_consumer_perf import deal_partitions
from pybench.spark_follow import Follower, client_lines, producer_line
from pybench.waits import Waits
from pybroker.cli.perf.producer_perf import read_properties
from pybroker.cli.perf.progress import ProgressBar
from pybroker.client import LatencyHistogram, TopicPartition
from pybroker_spark.load import Board, ConsumerPlan, Interval, LoadPlan, ProducerPlan, Result
from tests.unit.cli.perf.test_formats import shape

PRODUCER = ProducerPlan(bootstrap_servers="b:9", properties={}, topic="t", record_size=100)
CONSUMER = ConsumerPlan(bootstrap_servers="b:9", properties={}, topic="t")


def finished() -> Board:
    """Two producers and a consumer over three seconds; the second producer was lost after one."""
    board = Board(LoadPlan(run=3, clients=(PRODUCER, PRODUCER, CONSUMER), tasks=3))
    for client in range(3):
        board.step(client, {"type": "hello", "host": "here", "pid": 1})
        board.step(client, {"type": "ready", "client": client, "clock": 0.0})
    board.start()
    for second in range(3):
        for client in (0, 1, 2) if second == 0 else (0, 2):
            latencies = LatencyHistogram()
            latencies.record(2000 + 1000 * client, 1000)
            role, phase = board.plan.clients[client].role, "steady" if second else "warm-up"
            sums = (1000, 100_000, 0, 2_000_000, 2000 + 1000 * client)
            row = Interval(client, client, role, "t", phase, second, second + 1.0, *sums, latencies.encode())
            board.step(client, {"type": "interval", "interval": row.to_message()})
    for client, records in ((0, 3000), (1, 1000), (2, 3000)):
        outcomes = [["t", 0, records, 0]] if client < 2 else []
        numbers = {"client": client, "records": records, "end_s": 1.0 if client == 1 else 3.0, "outcomes": outcomes}
        board.step(client, {"type": "progress", **numbers})
        board.step(client, {"type": "steady", "client": client, "at_s": 1.0})
        if client != 1:
            fate = {"state": "done", "reason": "", "timed_out": False, "rebalance_s": 0.0, "disturbance": None}
            board.step(client, {"type": "ended", **numbers, **fate})
    board.lose(1, "its connection broke")
    return board


def result() -> Result:
    return Result.of(finished(), 1_795_000_000.0, "task 1 was lost")


def test_the_lines_are_kafkas_for_all_and_for_each_client() -> None:
    lost = result()
    first, second = client_lines(lost, "producer")
    assert first == "task 0: " + producer_line(lost.of_client(lost.clients[0]))
    assert second.endswith("99.9th. LOST: its connection broke")
    assert shape(producer_line(lost.total("producer"))) == [
        (
            "# records sent, #.6 records/sec (#.2 MB/sec), #.2 ms avg latency, #.2 ms max latency, "
            "# ms #th, # ms #th, # ms #th, # ms #.1th."
        )
    ]
    assert producer_line(lost.total("producer")).startswith("4000 records sent, 1333.333333 records/sec (0.13 MB/sec)")
    steady = producer_line(lost.steady("producer"), steady_state=True)
    assert steady.startswith("2000 steady state records sent, 1000.000000 records/sec")
    (consumer,) = client_lines(lost, "consumer")
    assert consumer.startswith("task 2: 3000 records read, 1000.000000 records/sec (0.10 MB/sec), 4.00 ms 50th")


def test_a_window_holds_every_clients_rows_of_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    waits = Waits()
    with ProgressBar("records sent", 4000) as bar:
        follower = Follower("producer", bar, 1.0, waits)
        follower(Board(finished().plan), 0.0)
        assert waits.seconds == {}
        follower(finished(), 3.0)
    lines = capsys.readouterr().out.splitlines()
    assert list(waits.seconds) == ["tasks"]
    assert [line.split(",")[0] for line in lines] == ["2000 records sent", "1000 records sent"]
    assert shape(lines[0])[0].startswith("# records sent, #.1 records/sec (#.2 MB/sec), #.1 ms avg latency")


@pytest.fixture(autouse=True)
def _known_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_output, "_versions", lambda _result: {"broker": "metadata.version 25"})


def test_files_hold_intervals_and_what_was_acknowledged(tmp_path: Path) -> None:
    options = Namespace(
        tool="spark-producer-perf",
        master="local[2]",
        parquet=tmp_path / "made" / "here",
        html=tmp_path / "report.html",
        json=tmp_path / "report.json",
        waits=Waits(),
        spark_version="4.3.0",
    )
    options.waits.note("Spark", 31.25)
    spark_output.write_files(result(), options, {"topic": "t", "note": "<b>"})
    document = json.loads(options.json.read_text())
    assert (document["records"], document["roles"]["producer"]["records"], document["whole"]) == (3000, 4000, False)
    assert document["roles"]["producer"]["latency_ms"]["p50"] == pytest.approx(2, rel=0.001)
    acknowledged = [(e["producer"], e["topic"], e["partition"], e["acknowledged"]) for e in document["acknowledged"]]
    assert acknowledged == [(30000, "t", 0, 3000), (30001, "t", 0, 1000)]
    assert [client["state"] for client in document["clients"]] == ["done", "lost", "done"]
    intervals = pq.read_table(options.parquet / "intervals.parquet").to_pylist()
    assert len(intervals) == len(document["intervals"]) == 7
    assert intervals[0]["phase"] == "warm-up"
    assert LatencyHistogram(intervals[0]["histogram"]).count == intervals[0]["records"] == 1000
    table = pq.read_table(options.parquet / "acknowledged.parquet").to_pylist()
    assert [(row["producer"], row["complete"]) for row in table] == [(30000, True), (30001, False)]
    assert document["waited_s"] == {"Spark": 31.25}
    page = options.html.read_text()
    assert "spark 4.3.0, broker metadata.version 25; before the load began: Spark 31.2 s" in page
    assert page.count("<svg") == 5
    assert "task 1 was lost" in page
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert "http-equiv" not in page
    assert "src=" not in page


def test_a_load_that_never_moved_a_record_has_a_report_too(tmp_path: Path) -> None:
    board = Board(LoadPlan(run=3, clients=(PRODUCER,), tasks=1))
    board.lose(0, "gone")
    nothing = Result.of(board, 1.0, "gone")
    options = Namespace(
        tool="spark-producer-perf",
        master="local[2]",
        parquet=None,
        html=None,
        json=None,
        waits=Waits(),
        spark_version="",
    )
    document = spark_output.build_document(nothing, options, {})
    write_html(nothing, document, tmp_path / "report.html")
    assert "lost" in (tmp_path / "report.html").read_text()


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=30), st.integers(1, 8))
def test_partitions_are_dealt_by_what_they_hold(counts: list[int], tasks: int) -> None:
    held = {TopicPartition("t", index): (0, count) for index, count in enumerate(counts)}
    tasks = min(tasks, len(counts))
    shares = deal_partitions(held, tasks)
    assert sorted(each.partition for share in shares for each in share) == list(range(len(counts)))
    assert all(shares), "a task without a partition would have nothing to do"
    weights = [sum(held[each][1] for each in share) for share in shares]
    assert max(weights) - min(weights) <= max(counts)


COMMON = ["--bootstrap-server", "127.0.0.1:1", "--topic", "t", "--num-records", "10", "--throughput", "-1"]


def test_each_task_has_a_transactional_id_of_its_own() -> None:
    parser = argparse.ArgumentParser()
    spark_producer_perf.add_options(parser)
    words = [*COMMON, "--record-size", "10", "--transactional-id", "load", "--transaction-duration-ms", "250"]
    options = parser.parse_args(words)
    properties = read_properties(options)
    clients = spark_producer_perf.build_plan(options, "b:9", properties, (0,), 2).clients
    producers = [client for client in clients if isinstance(client, ProducerPlan)]
    assert [one.properties["transactional.id"] for one in producers] == ["load-0", "load-1"]
    assert [(one.is_transactional, one.transaction_s) for one in producers] == [(True, 0.25)] * 2
    plain = build_plain_plan()
    assert not any(one.is_transactional for one in plain.clients if isinstance(one, ProducerPlan))


def build_plain_plan() -> LoadPlan:
    parser = argparse.ArgumentParser()
    spark_producer_perf.add_options(parser)
    options = parser.parse_args([*COMMON, "--record-size", "10"])
    return spark_producer_perf.build_plan(options, "b:9", read_properties(options), (0,), 2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["spark-producer-perf", *COMMON, "--payload-monotonic"], "use --record-size, not a payload"),
        (["spark-producer-perf", *COMMON, "--record-size", "10", "--stamped"], "--record-size must be at least 24"),
        (
            ["spark-producer-perf", *COMMON, "--record-size", "50", "--stamped", "--client", "confluent-kafka"],
            "leave out --client",
        ),
        (["spark-producer-perf", *COMMON, "--record-size", "50", "--print-metrics"], "use --json"),
        (["spark-e2e-latency", *COMMON, "--record-size", "5"], "--record-size must be at least 24"),
        (["spark-e2e-latency", *COMMON, "--producers", "0"], "--producers must be above 0"),
        (["spark-consumer-perf", *COMMON[:4]], "Exactly one of --num-records"),
        (["spark-mix", "/nothing.toml", *COMMON[:2]], "/nothing.toml: No such file"),
        (
            ["spark-producer-perf", *COMMON, "--record-size", "9", "--command-property", "acks=7"],
            "acks=7: must be one of 0, 1",
        ),
        (
            ["spark-consumer-perf", *COMMON[:6], "--command-property", "fetch.min.bytes=x"],
            "fetch.min.bytes=x: must be a whole number",
        ),
        (["spark-producer-perf", *COMMON, "--record-size", "9", "--tasks", "0"], "--tasks 0: must be at least 1"),
        (["spark-producer-perf", *COMMON, "--record-size", "9", "--json", "/no/a.json"], "--json /no/a.json: must be"),
        (["producer-perf", *COMMON, "--record-size", "9", "--json", "/no/a.json"], "--json /no/a.json: must be"),
        (["spark-consumer-perf", *COMMON[:6], "--html", "/no/a.html"], "--html /no/a.html: must be a file in"),
        (["spark-e2e-latency", *COMMON, "--parquet", "/dev/null/x"], "--parquet /dev/null/x: /dev/null is a file"),
        (["spark-e2e-latency", *COMMON, "--warm-up", "1"], "--warm-up 1: must be at least 0 and below the load's 0.01"),
        (
            ["spark-consumer-perf", *COMMON[:2], "--num-records", "1", "--include", "a["],
            "--include a[: must be a regular",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_spark_starts(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if words[0] == "spark-e2e-latency":
        words = [word for word in words if word not in ("--throughput", "-1")]
    assert main.main(words) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["pyspark", "pybroker_spark.load"])
def test_what_is_not_installed_is_reported(
    missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    assert main.main(["spark-producer-perf", *COMMON, "--record-size", "50"]) == 1
    assert "pip install ./spark in a clone of pybroker" in capsys.readouterr().err
