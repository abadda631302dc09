from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from pybroker.cli.main import main
from pybroker.client import Admin, LoadGenerator, NewTopic, Producer, TopicPartition
from pybroker.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("orders", 2), NewTopic("bytes", 1), NewTopic("many", 1)])
        with Producer(broker.bootstrap_servers) as producer:
            for number in range(3):
                producer.send("orders", b"%d" % number, b"k", partition=number % 2, timestamp_ms=number)
            producer.send("bytes", b"\xff", b'{"a": 1.10}', headers=[("h", b"v"), ("n", None)], timestamp_ms=9)
            producer.send("bytes", b'{"b":[1, 2]}', timestamp_ms=10)
            LoadGenerator(producer).send_many("many", 0, b"x" * 20 * 200_000, 20)
            producer.flush()
        yield broker


def command(broker: Broker, *arguments: str) -> list[str]:
    return ["console-consumer", "--bootstrap-server", broker.bootstrap_servers, *arguments]


def printed(broker: Broker, capfd: pytest.CaptureFixture[str], *arguments: str) -> str:
    capfd.readouterr()
    assert main(command(broker, *arguments)) == 0
    return capfd.readouterr().out


def test_all_partitions_are_read_without_a_group(broker: Broker, capfd: pytest.CaptureFixture[str]) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        before = admin.list_groups()
    out = printed(broker, capfd, "--topic", "orders", "--from-beginning", "--max-messages", "3")
    assert sorted(out.splitlines()) == ["0", "1", "2"]
    with Admin(broker.bootstrap_servers) as admin:
        assert {group.group_id for group in admin.list_groups()} == {group.group_id for group in before}


def test_topics_are_found_by_a_pattern(broker: Broker, capfd: pytest.CaptureFixture[str]) -> None:
    out = printed(broker, capfd, "--include", "ord.*|bytes", "--from-beginning", "--max-messages", "5")
    assert len(out.splitlines()) == 5


def test_a_member_commits_what_was_printed(broker: Broker, capfd: pytest.CaptureFixture[str]) -> None:
    read = ["--topic", "many", "--from-beginning", "--group", "g", "--max-messages", "7"]
    assert printed(broker, capfd, *read) == ("x" * 20 + "\n") * 7
    with Admin(broker.bootstrap_servers) as admin:
        assert admin.list_group_offsets("g")[TopicPartition("many", 0)].offset == 7
    assert printed(broker, capfd, *read) == ("x" * 20 + "\n") * 7
    with Admin(broker.bootstrap_servers) as admin:
        assert admin.list_group_offsets("g")[TopicPartition("many", 0)].offset == 14


def test_a_partition_is_read_from_an_offset(broker: Broker, capfd: pytest.CaptureFixture[str]) -> None:
    at = ["--topic", "orders", "--partition", "0", "--offset", "1", "--max-messages", "1"]
    shown = ["--property", "print.offset=true", "--property", "print.epoch=true"]
    assert printed(broker, capfd, *at, *shown) == "Offset:1\tEpoch:0\t2\n"


def test_every_record_is_an_object_of_json(broker: Broker, capfd: pytest.CaptureFixture[str]) -> None:
    out = printed(broker, capfd, "--topic", "bytes", "--from-beginning", "--max-messages", "2", "--json")
    first, second = map(json.loads, out.splitlines())
    assert first == {
        "topic": "bytes",
        "partition": 0,
        "offset": 0,
        "timestamp": 9,
        "timestampType": "CreateTime",
        "leaderEpoch": 0,
        "headers": [{"key": "h", "value": "v"}, {"key": "n", "value": None}],
        "key": '{"a": 1.10}',
        "value": {"base64": "/w=="},
    }
    assert (second["key"], second["value"], second["headers"]) == (None, '{"b":[1, 2]}', [])


def test_values_that_are_json_are_laid_out(broker: Broker, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["--topic", "bytes", "--from-beginning", "--max-messages", "2", "--formatter", "json"]
    out = printed(broker, capfd, *arguments)
    assert '"key": {\n    "a": 1.10\n  }' in out
    assert '"value": {\n    "b": [\n      1,\n      2\n    ]\n  }' in out


def test_a_record_that_cannot_be_decoded_ends_it_or_is_skipped(
    broker: Broker, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = command(
        broker, "--topic", "bytes", "--from-beginning", "--max-messages", "2", "--value-deserializer", "Long"
    )
    assert main(arguments) == 1
    reported = capfd.readouterr().err
    assert "bytes-0 offset 0: Size of data received by LongDeserializer is not 8" in reported
    assert "Processed a total of 1 messages" in reported
    assert main([*arguments, "--skip-message-on-error"]) == 0
    reported = capfd.readouterr().err
    assert reported.count("skipping this message") == 2
    assert "Processed a total of 2 messages" in reported


def test_it_ends_when_nothing_comes(broker: Broker, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["--topic", "orders", "--timeout-ms", "100", "--formatter", "NoOp", "--enable-systest-events"]
    assert printed(broker, capfd, *arguments) == "shutdown_complete\n"


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["--topic", "t", "--offset", "3"], "The partition is required when offset is specified."),
        (["--include", "t", "--partition", "3"], "The topic is required when partition is specified."),
        (["--topic", "orders", "--partition", "7"], "--partition 7: topic orders has partitions 0 to 1"),
        (
            ["--topic", "orders", "--partition", "0", "--offset", "soon"],
            "The provided offset value 'soon' is incorrect",
        ),
        (["--topic", "t", "--formatter", "Best"], "--formatter Best: unknown formatter; expected one of Default"),
        (["--topic", "t", "--property", "print.keys=true"], "print.keys: not a property of the formatter"),
        (["--topic", "t", "--key-deserializer", "Avro"], "Avro: unknown deserializer; expected one of String"),
        (
            ["--topic", "t", "--from-beginning", "--consumer-property", "auto.offset.reset=latest"],
            "Can't simultaneously specify --from-beginning and 'auto.offset.reset=latest'",
        ),
        (["--topic", "t", "--group", "a", "--consumer-property", "group.id=b"], "Detected group ids: 'a', 'b'"),
    ],
)
def test_what_makes_no_sense_is_refused(
    broker: Broker, capfd: pytest.CaptureFixture[str], arguments: list[str], reported: str
) -> None:
    assert main(command(broker, *arguments)) == 1
    assert reported in capfd.readouterr().err


def process(
    broker: Broker, *arguments: str, stdout: int | IO[bytes] = subprocess.PIPE, unbuffered: bool = False
) -> subprocess.Popen[bytes]:
    program = [sys.executable, *(["-u"] if unbuffered else []), "-m", "pybroker.cli.main", *command(broker, *arguments)]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    return subprocess.Popen(program, stdout=stdout, stderr=subprocess.PIPE, env=environment)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_with_the_count(broker: Broker, number: signal.Signals, status: int) -> None:
    with process(broker, "--topic", "orders", "--from-beginning") as running:
        assert running.stdout is not None
        assert len([running.stdout.readline() for _ in range(3)]) == 3
        running.send_signal(number)
        try:
            _, reported = running.communicate(timeout=60)
        finally:
            running.kill()
    assert running.returncode == status
    assert reported.decode() == "Processed a total of 3 messages\n"


def test_a_reader_that_goes_ends_it_quietly(broker: Broker) -> None:
    with process(broker, "--topic", "many", "--from-beginning") as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"x" * 20 + b"\n"
        running.stdout.close()
        assert running.stderr is not None
        reported = running.stderr.read().decode()
    assert running.returncode == 0
    assert reported.startswith("Processed a total of ")
    assert reported.count("\n") == 1


def test_a_reader_that_goes_after_the_last_record_ends_it(broker: Broker) -> None:
    with process(broker, "--topic", "orders", "--from-beginning") as running:
        assert running.stdout is not None
        assert len([running.stdout.readline() for _ in range(3)]) == 3
        running.stdout.close()
        assert running.wait(60) == 0
        assert running.stderr is not None
        assert running.stderr.read() == b"Processed a total of 3 messages\n"


def test_output_to_a_file_is_whole(broker: Broker, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = command(broker, "--topic", "many", "--from-beginning", "--max-messages", "200000")
    with out.open("wb") as file:
        program = [sys.executable, "-m", "pybroker.cli.main", *arguments]
        subprocess.run(program, stdout=file, stderr=subprocess.DEVNULL, check=True, env={**os.environ})
    assert out.read_bytes() == (b"x" * 20 + b"\n") * 200_000


MANY = ("--topic", "many", "--from-beginning", "--command-property", "auto.commit.interval.ms=1", "--group")
"""Commits at every opportunity."""


def committed(broker: Broker, group: str) -> int | None:
    with Admin(broker.bootstrap_servers) as admin:
        offset = admin.list_group_offsets(group).get(TopicPartition("many", 0))
    return None if offset is None else offset.offset


def processed(reported: bytes) -> int:
    return int(reported.decode().rpartition("Processed a total of ")[2].partition(" ")[0])


def test_on_a_full_disk_nothing_is_committed(broker: Broker) -> None:
    with Path("/dev/full").open("wb") as full, process(broker, *MANY, "full", stdout=full) as running:
        _, reported = running.communicate(timeout=60)
    assert running.returncode == 0
    first, last = reported.decode().splitlines()
    assert first == "Unable to write to standard out, closing consumer. (No space left on device)"
    assert last == "Processed a total of 0 messages"
    assert not committed(broker, "full")


def test_what_a_reader_that_goes_has_not_taken_is_not_committed(broker: Broker) -> None:
    with process(broker, *MANY, "gone") as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert len([running.stdout.readline() for _ in range(100_000)]) == 100_000
        running.stdout.close()
        reported = running.stderr.read()
    assert running.returncode == 0
    assert 0 < processed(reported) < 200_000
    assert committed(broker, "gone") == processed(reported)


@pytest.mark.parametrize("unbuffered", [False, True])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_in_the_middle_commits_what_was_written(
    broker: Broker, number: signal.Signals, status: int, unbuffered: bool
) -> None:
    group = f"signal-{status}-{unbuffered}"
    with process(broker, *MANY, group, unbuffered=unbuffered) as running:
        assert running.stdout is not None
        assert running.stdout.readline()
        assert running.stderr is not None
        running.send_signal(number)
        out, reported = running.stdout.read(), running.stderr.read()
    assert running.returncode == status
    assert committed(broker, group) == processed(reported) == out.count(b"\n") + 1


@pytest.mark.parametrize("unbuffered", [False, True])
def test_a_signal_ends_a_write_that_nobody_reads(broker: Broker, unbuffered: bool) -> None:
    group = f"blocked-{unbuffered}"
    with process(broker, *MANY, group, unbuffered=unbuffered) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline()
        running.send_signal(signal.SIGTERM)
        reported = running.stderr.read()
        taken = running.stdout.read().count(b"\n")
    assert running.returncode == 143
    assert (committed(broker, group) or 0) == processed(reported) <= taken + 1


def test_what_stands_behind_a_record_that_cannot_be_shown_is_not_committed(
    broker: Broker, capfd: pytest.CaptureFixture[str]
) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("strange", 1)])
    with Producer(broker.bootstrap_servers) as producer:
        for key in (b"\0\7", b"\0\0", b"\0\7"):
            producer.send("strange", b"", key)
    arguments = ("--topic", "strange", "--from-beginning", "--formatter", "Offsets", "--group", "strange")
    assert main(command(broker, *arguments)) == 1
    reported = capfd.readouterr().err
    assert "Error processing message: Could not read record at offset 1 due to: " in reported
    assert "Processed a total of 2 messages" in reported
    with Admin(broker.bootstrap_servers) as admin:
        assert admin.list_group_offsets("strange")[TopicPartition("strange", 0)].offset == 2


@pytest.mark.parametrize("options", [[], ["--group", "g"], ["--partition", "0", "--offset", "earliest"]])
def test_it_ends_in_time_where_no_broker_answers(capfd: pytest.CaptureFixture[str], options: list[str]) -> None:
    where = ["--bootstrap-server", "127.0.0.1:1", "--topic", "t", "--timeout-ms", "1000"]
    # Longer than this test may take.
    patient = ["--command-property", "default.api.timeout.ms=3600000"]
    assert main(["console-consumer", *where, *patient, *options]) == 0
    first, last = capfd.readouterr().err.splitlines()
    assert first.startswith("ERROR Error processing message, terminating consumer process: no record came within")
    assert "no broker answered: 127.0.0.1:1: " in first
    assert last == "Processed a total of 0 messages"


def test_without_standard_output_it_does_not_begin(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout", None)
    assert main(command(broker, "--topic", "orders")) == 1
    assert "standard output is closed" in capsys.readouterr().err
