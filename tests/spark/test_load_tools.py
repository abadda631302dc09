"""The Spark tools of `pybench` from end to end, in the session of the tests: their lines, files and exit statuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from pybench import main
from pybroker.client import Admin, NewTopic, Producer
from pybroker.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.usefixtures("spark")]


def make_topic(broker: Broker, name: str, partitions: int) -> str:
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, partitions, 1)])
        admin.wait_for_leaders(name)
    return name


def test_what_producers_wrote_consumers_read(
    spark: SparkSession, broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = make_topic(broker, "tools", 3)
    common = ["--bootstrap-server", broker.bootstrap_servers, "--topic", topic, "--num-records", "3001"]
    wrote = ["spark-producer-perf", *common, "--record-size", "40", "--throughput", "6000", "--warmup-records", "1000"]
    files = ["--parquet", str(tmp_path), "--json", str(tmp_path / "w.json"), "--html", str(tmp_path / "w.html")]
    assert main.main([*wrote, *files, "--stamped", "--command-property", "linger.ms=1"]) == 0
    first, second, total, steady = capsys.readouterr().out.splitlines()[-4:]
    assert [first.split(" records")[0], second.split(" records")[0]] == ["task 0: 1501", "task 1: 1500"]
    assert (total.split(" records")[0], steady.split(" records")[0]) == ("3001", "2001 steady state")
    written = json.loads((tmp_path / "w.json").read_text())
    # How far below a busy machine remains says nothing.
    assert 0 < written["records_per_second"] <= 6600
    assert written["settings"]["properties"]["linger.ms"] == "1"
    features = "group.version 1, metadata.version 25, streams.version 1, transaction.version 2"
    assert written["versions"].items() >= {"spark": spark.version, "broker": features}.items()
    assert list(written["waited_s"]) == ["slots", "tasks"], "the session was there"
    rows = pq.read_table(tmp_path / "acknowledged.parquet").to_pylist()
    assert sum(row["acknowledged"] for row in rows) == 3001
    for group in ([], ["--group", "tools"]):
        read = ["spark-consumer-perf", *common, *group, "--stamped", "--json", str(tmp_path / "r.json")]
        assert main.main(read) == 0
        assert capsys.readouterr().out.splitlines()[-1].split(", ")[4] == "3001"
        shown = json.loads((tmp_path / "r.json").read_text())
        assert (shown["records"], shown["failed"], len(shown["clients"])) == (3001, 0, 2)


def test_latency_is_taken_from_stamp_to_arrival(
    spark: SparkSession, broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["spark-e2e-latency", "--bootstrap-server", broker.bootstrap_servers, "--topic", "tools-e2e"]
    assert main.main([*words, "--num-records", "300", "--producer-acks", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith('Topic "tools-e2e" does not exist.')
    assert lines[-2].startswith("Avg latency: ")
    assert lines[-1].startswith("Percentiles: 50th = ")


ENDING = 'endingOffsets={"tools-audit":{"0":9}}'
IMPATIENT = ("--option", "kafka.default.api.timeout.ms=1000", "--option", "kafka.request.timeout.ms=1000")
MIX = """
title = "two topics"
topics = [{ name = "tools-mix", partitions = 2 }, { name = "tools-plain" }]
producers = [
    { topic = "tools-mix", codec = "zstd", rate = 1000, keys = 10, skew = 1.0 },
    { topic = "tools-plain", rate = 500 },
]
consumers = [{ topic = "tools-mix", group = "tools-mix" }, { topic = "tools-plain" }, { topic = "tools-mix" }]
steps = [{ seconds = 0.5 }, { seconds = 0.5, rate = 2 }]
"""


def test_a_mix_is_read_as_often_as_it_is_wanted_and_reported_by_tls(
    spark: SparkSession, broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mix.toml").write_text(MIX)
    words = ["spark-mix", str(tmp_path / "mix.toml"), "--bootstrap-server", broker.bootstrap_servers, "--channel-tls"]
    assert main.main([*words, "--json", str(tmp_path / "mix.json")]) == 0, capsys.readouterr().err
    shown = json.loads((tmp_path / "mix.json").read_text())
    assert shown["roles"]["producer"]["records"] == 1500 + 750
    assert shown["roles"]["consumer"]["records"] == 1500 + 750 + 1500
    assert shown["tasks"] == 2


def test_more_tasks_than_slots_are_refused_with_what_to_set(
    spark: SparkSession, broker: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["spark-producer-perf", "--bootstrap-server", broker.bootstrap_servers, "--topic", "tools-few"]
    words += ["--num-records", "10", "--record-size", "10", "--throughput", "-1", "--tasks", "3"]
    assert main.main(words) == 1
    assert "needs 3 slots at once" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("further", "expected"),
    [
        (["--topic", "nowhere"], "topic 'nowhere'"),
        (["--topic", "tools-audit", "--option", "startingOffset=3"], "did you mean startingOffsets?"),
        (["--topic", "tools-audit", "--option", ENDING], "offsets 0 to 9 cannot be read"),
        (["--topic", "tools-audit", "--json", "/nowhere/audit.json"], "--json /nowhere/audit.json: must be a file in"),
        (["--topic", "tools-audit"], "no record has a stamp"),
        (["--bootstrap-server", "127.0.0.1:1", "--topic", "tools-audit", *IMPATIENT], "127.0.0.1:1"),
    ],
)
def test_an_audit_that_cannot_be_made_is_reported_in_a_line_and_is_no_loss(
    spark: SparkSession, broker: Broker, capsys: pytest.CaptureFixture[str], further: list[str], expected: str
) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        there = "tools-audit" in admin.list_topics()
    if not there:
        with Producer(broker.bootstrap_servers) as producer:
            producer.send(make_topic(broker, "tools-audit", 1), b"a value of another program")
    assert main.main(["spark-audit", "--bootstrap-server", broker.bootstrap_servers, *further]) == 2
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert "every record is there once" not in captured.out
    assert line.startswith("audit: ")
    assert expected in line
