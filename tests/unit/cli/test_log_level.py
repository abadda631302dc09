from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator

import pytest

from pybroker.cli.log_level import JSON
from pybroker.cli.main import main
from pybroker.testing import Broker
from tests.support.json_shapes import shape_fault

LogLevel = Callable[..., int]


@pytest.fixture(scope="module")
def log_level() -> Iterator[LogLevel]:
    with Broker() as broker:
        yield lambda *arguments: main(["log-level", "--bootstrap-server", broker.bootstrap_servers, *arguments])


def test_a_level_is_shown_changed_and_inherited_again(log_level: LogLevel, capsys: pytest.CaptureFixture[str]) -> None:
    assert log_level("kafka.network=debug", "kafka") == 0
    before, kafkas = capsys.readouterr().out.splitlines()
    assert before.split() == ["kafka.network", "DEBUG"]
    assert logging.getLogger("pybroker.net").level == logging.DEBUG
    assert log_level("--unset", "kafka.network", "--json", "--broker", "1") == 0
    document = json.loads(capsys.readouterr().out)
    assert shape_fault(document, JSON[""]) is None
    assert document == [{"broker": 1, "loggers": {"kafka.network": kafkas.split()[1]}}]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["kafka=loud"], "Cannot set the log level of kafka to LOUD"),
        (["nobody=INFO"], "Logger nobody does not exist!"),
        (["nobody"], "broker 1 has no logger nobody; it has asyncio, kafka, "),
        (["--unset", "root"], "Removing the log level of the root logger is not allowed"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    log_level: LogLevel, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert log_level(*arguments) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
