from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybroker.cli.main import main
from pybroker.client import Admin, NewTopic, Producer, TopicPartition
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
            producer.send_many("many", 0, b"x" * 20 * 200_000, 20)
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
    said = capfd.readouterr().err
    assert "bytes-0 offset 0: Size of data received by LongDeserializer is not 8" in said
    assert "Processed a total of 1 messages" in said
    assert main([*arguments, "--skip-message-on-error"]) == 0
    said = capfd.readouterr().err
    assert said.count("skipping this message") == 2
    assert "Processed a total of 2 messages" in said


def test_it_ends_when_nothing_comes(broker: Broker, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["--topic", "orders", "--timeout-ms", "100", "--formatter", "NoOp", "--enable-systest-events"]
    assert printed(broker, capfd, *arguments) == "shutdown_complete\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--topic", "t", "--offset", "3"], "The partition is required when offset is specified."),
        (["--include", "t", "--partition", "3"], "The topic is required when partition is specified."),
        (["--topic", "orders", "--partition", "7"], "--partition 7: topic orders has partitions 0 to 1"),
        (
            ["--topic", "orders", "--partition", "0", "--offset", "soon"],
            "The provided offset value 'soon' is incorrect",
        ),
        (["--topic", "t", "--formatter", "Best"], "--formatter Best: there is no such formatter; there are Default"),
        (["--topic", "t", "--property", "print.keys=true"], "print.keys: is no property of the formatter"),
        (["--topic", "t", "--key-deserializer", "Avro"], "Avro: there is no such deserializer; there are String"),
        (
            ["--topic", "t", "--from-beginning", "--consumer-property", "auto.offset.reset=latest"],
            "Can't simultaneously specify --from-beginning and 'auto.offset.reset=latest'",
        ),
        (["--topic", "t", "--group", "a", "--consumer-property", "group.id=b"], "Detected group ids: 'a', 'b'"),
    ],
)
def test_what_makes_no_sense_is_refused(
    broker: Broker, capfd: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main(command(broker, *arguments)) == 1
    assert said in capfd.readouterr().err


def process(broker: Broker, *arguments: str) -> subprocess.Popen[bytes]:
    program = [sys.executable, "-m", "pybroker.cli.main", *command(broker, *arguments)]
    return subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 130)])
def test_a_signal_ends_it_with_the_count(broker: Broker, number: signal.Signals, status: int) -> None:
    with process(broker, "--topic", "orders", "--from-beginning") as running:
        assert running.stdout is not None
        assert len([running.stdout.readline() for _ in range(3)]) == 3
        running.send_signal(number)
        try:
            _, said = running.communicate(timeout=30)
        finally:
            running.kill()
    assert running.returncode == status
    assert said.decode() == "Processed a total of 3 messages\n"


def test_a_reader_that_goes_ends_it_quietly(broker: Broker) -> None:
    with process(broker, "--topic", "many", "--from-beginning") as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"x" * 20 + b"\n"
        running.stdout.close()
        assert running.stderr is not None
        said = running.stderr.read().decode()
    assert running.returncode == 0
    assert said.startswith("Processed a total of ")
    assert said.count("\n") == 1


def test_output_to_a_file_is_whole(broker: Broker, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = command(broker, "--topic", "many", "--from-beginning", "--max-messages", "200000")
    with out.open("wb") as file:
        program = [sys.executable, "-m", "pybroker.cli.main", *arguments]
        subprocess.run(program, stdout=file, stderr=subprocess.DEVNULL, check=True, env={**os.environ})
    assert out.read_bytes() == (b"x" * 20 + b"\n") * 200_000
