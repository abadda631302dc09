"""The tools from end to end, beside Kafka's own Java tools on the same broker: same lines, other numbers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybench.peers.java import run_java_tool
from pybroker.client import Admin, NewTopic
from pybroker.testing import Broker
from tests.support import programs
from tests.unit.cli.perf.test_formats import shape


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker() as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("perf", 1, 1)])
            admin.wait_for_leaders("perf")
        yield broker.bootstrap_servers


def pybench(*words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "pybench.main", *words], capture_output=True, text=True, timeout=350, check=False
    )
    assert done.returncode == status, done.stderr
    return done


@pytest.mark.java
def test_producer_perf_prints_what_kafkas_tool_prints(servers: str, tmp_path: Path) -> None:
    programs.kafka_tools()
    words = ["--topic", "perf", "--num-records", "2000", "--record-size", "100", "--throughput", "-1"]
    words += ["--bootstrap-server", servers, "--warmup-records", "500", "--reporting-interval", "60000"]
    theirs = run_java_tool("producer-perf", *words)
    assert theirs.returncode == 0, theirs.stderr
    ours = pybench("producer-perf", *words)
    assert shape(ours.stdout)[0] == shape(theirs.stdout)[0]
    assert shape(ours.stdout)[-2:] == shape(theirs.stdout)[-2:]
    assert [line.split(" records sent")[0] for line in ours.stdout.splitlines()[-2:]] == ["2000", "1500 steady state"]


def test_old_and_new_spellings_do_the_same(servers: str, tmp_path: Path) -> None:
    config = tmp_path / "producer.properties"
    config.write_text(f"bootstrap.servers={servers}\nacks=1\n")
    common = ["producer-perf", "--topic", "perf", "--num-records", "100", "--throughput", "-1", "--record-size", "10"]
    spellings = [
        ["--producer-props", f"bootstrap.servers={servers}", "acks=1"],
        ["--producer.config", str(config)],
        ["--command-config", str(config), "--command-property", "linger.ms=1", "batch.size=100"],
    ]
    for words in spellings:
        out = tmp_path / "out.json"
        pybench(*common, *words, "--json", str(out))
        document = json.loads(out.read_text())
        assert (document["records"], document["bytes"], document["failed"]) == (100, 1000, 0)
        assert document["settings"]["acks"] == "1"


def test_payloads_come_from_a_file_or_count_up(servers: str, tmp_path: Path) -> None:
    payloads = tmp_path / "payloads"
    payloads.write_text("one;two;three;")
    common = [
        "producer-perf",
        "--bootstrap-server",
        servers,
        "--topic",
        "perf",
        "--num-records",
        "20",
        "--throughput",
        "500",
    ]
    from_file = pybench(*common, "--payload-file", str(payloads), "--payload-delimiter", ";")
    assert f"Reading payloads from: {payloads}\nNumber of records read: 3\n" in from_file.stdout
    done = pybench(*common, "--payload-monotonic", "--print-metrics").stdout
    assert "20 records sent" in done
    assert re.search(r"^producer-metrics:record-send-total:\{client-id=perf-producer-client\} +: 20\.000$", done, re.M)
    read = ("consumer-perf", "--bootstrap-server", servers, "--topic", "perf", "--num-records", "20", "--print-metrics")
    for words in ((), ("--group", "metrics")):
        printed = pybench(*read, *words).stdout
        names = [line.split("{")[0] for line in printed.splitlines() if "-metrics:" in line]
        assert names == sorted(names)
        tags = r"\{client-id=perf-consumer-client, topic=perf, partition=0\}"
        assert re.search(rf"^consumer-fetch-manager-metrics:records-lag:{tags} +: 0\.000$", printed, re.M)
        assert ("consumer-coordinator-metrics:rebalance-total" in printed) == bool(words)


def test_producer_perf_sends_in_transactions(servers: str, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    common = ["producer-perf", "--bootstrap-server", servers, "--topic", "whole", "--num-records", "200"]
    common += ["--record-size", "50", "--throughput", "400", "--json", str(out)]
    for words in (["--transactional-id", "perf"], ["--transaction-duration-ms", "100"]):
        pybench(*common, *words)
        document = json.loads(out.read_text())
        assert (document["records"], document["failed"]) == (200, 0)
        assert document["transactions"] >= (3 if "--transaction-duration-ms" in words else 1)
        assert document["settings"]["transactional.id"].startswith("perf")


def test_consumer_perf_prints_what_kafkas_tool_prints(servers: str) -> None:
    pybench("producer-perf", "--bootstrap-server", servers, "--topic", "read", "--num-records", "300000",
            "--record-size", "50", "--throughput", "-1")  # fmt: skip
    done = pybench("consumer-perf", "--bootstrap-server", servers, "--topic", "read", "--messages", "300000")
    warning, header, row = done.stdout.splitlines()
    assert warning == "Warning: --messages is deprecated. Use --num-records instead."
    assert header.startswith("start.time, end.time, data.consumed.in.MB")
    assert shape(row) == ["#-#-# #:#:#:#, #-#-# #:#:#:#, #.4, #.4, #, #.4, #, #, #.4, #.4"]
    assert row.split(", ")[4] == "300000"


def test_consumer_perf_reads_as_a_member_of_a_group(servers: str, tmp_path: Path) -> None:
    pybench("producer-perf", "--bootstrap-server", servers, "--topic", "shared", "--num-records", "2000",
            "--record-size", "50", "--throughput", "-1")  # fmt: skip
    out = tmp_path / "out.json"
    words = ["--topic", "shared", "--num-records", "2000", "--group", "perf", "--json", str(out)]
    done = pybench("consumer-perf", "--bootstrap-server", servers, *words)
    assert done.stdout.splitlines()[-1].split(", ")[4] == "2000"
    assert json.loads(out.read_text())["records"] == 2000
    with Admin(servers) as admin:
        assert sum(offset.offset for offset in admin.list_group_offsets("perf").values()) == 2000


def test_consumer_perf_says_when_too_little_came(servers: str, tmp_path: Path) -> None:
    words = ["consumer-perf", "--bootstrap-server", servers, "--include", "perf|nothing", "--num-records", "1000000"]
    done = pybench(*words, "--timeout", "300", "--show-detailed-stats", "--hide-header", "--json", str(tmp_path / "j"))
    assert done.stdout.splitlines()[-1].startswith(
        "WARNING: Exiting before consuming the expected number of records: timeout (300 ms)"
    )
    assert json.loads((tmp_path / "j").read_text())["timed_out"] is True


@pytest.mark.parametrize("positional", [True, False])
def test_e2e_latency_sends_a_record_and_waits_for_it(servers: str, positional: bool) -> None:
    named = ["--bootstrap-server", servers, "--topic", "e2e", "--num-records", "3", "--producer-acks", "all",
             "--record-size", "20", "--record-key-size", "4", "--num-headers", "2", "--record-header-key-size", "3",
             "--record-header-size", "5"]  # fmt: skip
    done = pybench("e2e-latency", *([servers, "e2e-old", "3", "1", "20"] if positional else named))
    lines = done.stdout.splitlines()
    assert lines[0].startswith("WARNING: Positional argument usage is deprecated") is positional
    assert lines[-4].endswith("does not exist. Will create topic with 1 partition(s) and replication factor = 1")
    assert lines[-3].startswith("0\t")
    assert shape("\n".join(lines[-2:])) == ["Avg latency: #.4 ms", "Percentiles: #th = #, #th = #, #.1th = #"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["producer-perf", "--topic", "t", "--num-records", "1", "--throughput", "-1", "--record-size", "1"],
            "bootstrap",
        ),
        (["consumer-perf", "--bootstrap-server", "h:1", "--num-records", "1"], "[topic], [include]"),
        (["e2e-latency", "h:1", "t", "3"], "Expected 5 or 6 positional arguments, but got 3"),
        (["e2e-latency", "h:1", "t", "3", "0", "20"], "Please use 1 or all"),
        (
            [
                *("consumer-perf", "--bootstrap-server", "127.0.0.1:1", "--topic", "t", "--num-records", "1"),
                *("--command-property", "default.api.timeout.ms=1000", "request.timeout.ms=1000"),
            ],
            "no broker answered",
        ),
    ],
)
def test_what_cannot_work_is_reported_in_one_line(words: list[str], said: str) -> None:
    done = pybench(*words, status=1)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
