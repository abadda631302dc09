from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from pybroker.cli.main import main
from pybroker.client import Admin, Consumer, NewTopic, TopicPartition
from pybroker.testing import Broker
from tests.support.conditions import wait_until
from tests.support.scripted_broker import ScriptedBroker

Run = Callable[..., int]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(name, 1) for name in ("plain", "keyed", "small", "files")])
            admin.create_topics([NewTopic("wide", 4)])
        yield broker


@pytest.fixture
def run(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command with a text on standard input; its status."""

    def send(topic: str, text: bytes, *arguments: str) -> int:
        reading, writing = os.pipe()
        os.write(writing, text)
        os.close(writing)
        with io.FileIO(reading) as given:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(given))
            where = ["--bootstrap-server", broker.bootstrap_servers, "--topic", topic]
            return main(["console-producer", *where, *arguments])

    return send


def values(broker: Broker, topic: str, count: int, partitions: int = 1) -> list[bytes | None]:
    with Consumer(broker.bootstrap_servers, {"auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([TopicPartition(topic, number) for number in range(partitions)])
        found: list[bytes | None] = []
        while len(found) < count:
            found += [record.value for record in consumer.poll(60)]
        return found


def test_each_line_is_a_record(broker: Broker, run: Run) -> None:
    assert run("plain", b"one\r\n\ntwo \xff\nlast", "--compression-codec") == 0
    assert values(broker, "plain", 4) == [b"one", b"", b"two \xff", b"last"]


@pytest.mark.parametrize("sync", [[], ["--sync", "--timeout", "0"]])
def test_lines_go_where_their_keys_lead(broker: Broker, run: Run, sync: list[str]) -> None:
    text = b"".join(b"%d:%d\n" % (number % 7, number) for number in range(50))
    assert run("wide", text, "--property", "parse.key=true", "--property", "key.separator=:", *sync) == 0
    with Consumer(broker.bootstrap_servers, {"auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([TopicPartition("wide", number) for number in range(4)])
        places: dict[bytes | None, set[int]] = {}
        count = 0
        while count < 50:
            for record in consumer.poll(60):
                places.setdefault(record.key, set()).add(record.partition)
                count += 1
    assert len(places) == 7
    assert all(len(partitions) == 1 for partitions in places.values())


def test_what_comes_before_a_bad_line_is_sent(broker: Broker, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("keyed", b"a\t1\nb\t2\nplain\nc\t3\n", "--reader-property", "parse.key=true") == 1
    assert "No key separator found on line number 3: 'plain'" in capsys.readouterr().err
    assert values(broker, "keyed", 2) == [b"1", b"2"]


def test_a_record_that_is_too_large_is_reported_and_the_rest_is_sent(
    broker: Broker, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    text = b"a\n" + b"x" * 500 + b"\nb\n"
    assert run("small", text, "--producer-property", "max.request.size=400") == 1
    reported = capsys.readouterr().err
    assert "ERROR Error when sending message to topic small with key: null, value: 500 bytes with error: " in reported
    assert values(broker, "small", 2) == [b"a", b"b"]


def test_records_that_the_broker_refuses_are_reported_one_by_one(
    broker: Broker, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("refusing", 1, configs={"cleanup.policy": "compact"})])
    assert run("refusing", b"one\nthree\n") == 1
    reported = capsys.readouterr().err.splitlines()
    assert [line.partition(" bytes")[0].rpartition(" ")[2] for line in reported] == ["3", "5"]


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["--line-reader", "my.Reader"], "--line-reader my.Reader: there is no JVM here"),
        (["--property", "parse.keys=true"], "parse.keys: is no property of the reader"),
        (["--property", "key.separator"], "key.separator: must be key=value"),
        (["--property", "headers.separator=:"], "headers.separator and headers.key.separator may not be equal"),
        (["--property", "null.marker=\t"], "null.marker and key.separator may not be equal"),
        (["--property", "a=b", "--reader-property", "a=b"], "--property and --reader-property cannot be specified"),
        (["--producer-property", "transactional.id=t"], "transactional.id=t: lines are sent without transactions"),
        (["--compression-codec", "rar"], "compression.type=rar: must be one of none, gzip, snappy, lz4, zstd"),
        (["--batch-size", "-1"], "batch.size=-1: must be"),
    ],
)
def test_what_makes_no_sense_is_refused(
    run: Run, capsys: pytest.CaptureFixture[str], arguments: list[str], reported: str
) -> None:
    assert run("plain", b"", *arguments) == 1
    assert reported in capsys.readouterr().err


def test_standard_input_that_is_closed_has_no_lines(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert main(["console-producer", "--bootstrap-server", broker.bootstrap_servers, "--topic", "plain"]) == 0


def process(servers: str, *arguments: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "pybroker.cli.main", "console-producer", "--bootstrap-server", servers, *arguments]
    return subprocess.Popen([*words, "--topic", "t"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)


SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]


@pytest.mark.parametrize(("number", "status"), SIGNALS)
@pytest.mark.parametrize("sync", [[], ["--sync"]], ids=["async", "sync"])
def test_it_says_that_no_broker_answers_and_a_signal_ends_that(
    sync: list[str], number: signal.Signals, status: int
) -> None:
    with process("127.0.0.1:1", *sync) as running:
        assert running.stdin is not None
        assert running.stderr is not None
        running.stdin.write(b"line\n")
        running.stdin.flush()
        line = running.stderr.readline().decode()
        assert line.startswith("no broker answered: 127.0.0.1:1: ")
        assert "; trying again for " in line
        running.send_signal(number)
        _, reported = running.communicate(timeout=60)
    assert (running.returncode, reported) == (status, b"")


def test_a_second_signal_gives_up_what_is_not_acknowledged() -> None:
    not_leader = 6
    with (
        ScriptedBroker([not_leader] * 1000) as broker,
        process(broker.bootstrap_servers, "--timeout", "0", "--message-send-max-retries", "1000") as running,
    ):
        assert running.stdin is not None
        assert running.stderr is not None
        running.stdin.write(b"line\n")
        running.stdin.flush()
        wait_until(lambda: broker.requested[PRODUCE], within=60, what="sent")
        running.send_signal(signal.SIGINT)
        assert running.stderr.readline() == (
            b"WARN 1 records are not acknowledged yet; another signal ends without them\n"
        )
        running.send_signal(signal.SIGTERM)
        _, reported = running.communicate(timeout=60)
    assert running.returncode == 143
    failed = "ERROR Error when sending message to topic t with key: null, value: 4 bytes"
    assert reported.decode() == f"{failed} with error: the producer is closed\n"


PRODUCE = 0
