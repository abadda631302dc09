from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import Any

import pytest

from pybroker.cli.main import main
from pybroker.client import Producer
from pybroker.testing import Broker


def test_a_signal_ends_it_and_its_partitions_go() -> None:
    with Broker() as broker:
        with Producer(broker.bootstrap_servers) as producer:
            for number in range(3):
                producer.send("numbers", b"%d" % number)
        where = ["--bootstrap-server", broker.bootstrap_servers, "--topic", "numbers", "--group-id", "g"]
        words = [sys.executable, "-m", "pybroker.cli.main", "verifiable-consumer", *where]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            before: list[dict[str, Any]] = []
            while not before or before[-1]["name"] != "offsets_committed":
                before.append(json.loads(running.stdout.readline()))
            running.send_signal(signal.SIGTERM)
            rest = [json.loads(line)["name"] for line in running.stdout]
        assert running.returncode == 143
    names = ["startup_complete", "partitions_assigned", "records_consumed", "offsets_committed"]
    assert [event["name"] for event in before] == names
    numbers = {"topic": "numbers", "partition": 0}
    assert before[1]["partitions"] == [numbers]
    assert before[2]["partitions"] == [{**numbers, "count": 3, "minOffset": 0, "maxOffset": 2}]
    assert (before[3]["offsets"], before[3]["success"]) == ([{**numbers, "offset": 3}], True)
    assert rest == ["shutdown_requested", "partitions_revoked", "shutdown_complete"]


def test_a_protocol_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--bootstrap-server", "127.0.0.1:1", "--topic", "t", "--group-id", "g"]
    assert main(["verifiable-consumer", *where, "--group-protocol", "foo"]) == 1
    assert capsys.readouterr().err == (
        "pybroker verifiable-consumer: --group-protocol foo: must be classic or consumer\n"
    )
