from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator

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
    assert running.returncode == 0
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
