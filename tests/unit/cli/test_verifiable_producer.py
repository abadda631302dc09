from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybroker.cli.main import main
from pybroker.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def test_a_signal_ends_it_with_a_summary(broker: Broker) -> None:
    where = ["--bootstrap-server", broker.bootstrap_servers, "--topic", "numbers"]
    words = [sys.executable, "-m", "pybroker.cli.main", "verifiable-producer", *where, "--throughput", "1000"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        first = [json.loads(running.stdout.readline()) for _ in range(3)]
        running.send_signal(signal.SIGTERM)
        rest = [json.loads(line) for line in running.stdout]
    assert running.returncode == 143
    assert [event["name"] for event in first] == ["startup_complete", "producer_send_success", "producer_send_success"]
    assert [event["name"] for event in rest[-2:]] == ["shutdown_complete", "tool_data"]
    sent = [event for event in first + rest if event["name"] == "producer_send_success"]
    summary = rest[-1]
    assert (summary["sent"], summary["acked"], summary["target_throughput"]) == (len(sent), len(sent), 1000)
    assert [event["value"] for event in sent] == [str(number) for number in range(len(sent))]


def test_what_is_refused_is_an_event(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--bootstrap-server", broker.bootstrap_servers, "--topic", "no topic's name"]
    assert main(["verifiable-producer", *where, "--max-messages", "1"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    failed = next(event for event in events if event["name"] == "producer_send_error")
    assert failed["exception"] == "class org.apache.kafka.common.errors.InvalidTopicException"
    assert (failed["topic"], failed["key"], failed["value"]) == ("no topic's name", None, "0")
    assert (events[-1]["sent"], events[-1]["acked"]) == (1, 0)


def test_keys_that_cannot_repeat_are_refused(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--bootstrap-server", broker.bootstrap_servers, "--topic", "t"]
    assert main(["verifiable-producer", *where, "--repeating-keys", "0"]) == 1
    assert "--repeating-keys 0: must be at least 1" in capsys.readouterr().err


PROGRAM = [sys.executable, "-m", "pybroker.cli.main", "verifiable-producer", "--topic", "numbers", "--bootstrap-server"]


def test_it_ends_quietly_when_its_reader_has_gone(broker: Broker) -> None:
    words = [*PROGRAM, broker.bootstrap_servers]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert json.loads(running.stdout.readline())["name"] == "startup_complete"
        assert json.loads(running.stdout.readline())["name"] == "producer_send_success"
        running.stdout.close()
        reported = running.stderr.read()
    assert (running.returncode, reported) == (1, "")


def test_it_ends_on_a_full_disk(broker: Broker) -> None:
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [*PROGRAM, broker.bootstrap_servers], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert ran.returncode == 1
    assert ran.stderr.startswith("pybroker verifiable-producer: cannot write")
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_that_no_broker_answers_and_a_signal_ends_that(number: signal.Signals) -> None:
    words = [*PROGRAM, "127.0.0.1:1"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        line = running.stderr.readline()
        assert line.startswith("no broker answered: 127.0.0.1:1: ")
        assert "; trying again for " in line
        running.send_signal(number)
        # The send would go on for most of a minute.
        out, reported = running.communicate(timeout=60)
    assert (running.returncode, reported) == (128 + number, "")
    events = [json.loads(line) for line in out.splitlines()]
    names = ["startup_complete", "producer_send_error", "shutdown_complete", "tool_data"]
    assert [event["name"] for event in events] == names
    assert events[1]["message"] == "Producer closed while send in progress"
    assert (events[-1]["sent"], events[-1]["acked"]) == (1, 0)
