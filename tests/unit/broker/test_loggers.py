from __future__ import annotations

import logging
import re
from collections.abc import Iterator

import pytest

from pybroker.broker.loggers import KAFKA_NAMES, LevelChange, Loggers, kafka_name, level_name
from pybroker.protocol.errors import ErrorCode
from tests.support import repository


@pytest.fixture
def loggers() -> Iterator[Loggers]:
    """Levels of their own, put back at the end."""
    before = {name: logging.getLogger(name).level for name in ("", *KAFKA_NAMES)}
    logging.getLogger().setLevel(logging.INFO)
    yield Loggers()
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


def test_every_logger_has_a_name_of_kafkas() -> None:
    written = {
        name
        for path in repository.files_under("pybroker", suffix=".py")
        for name in re.findall(r'getLogger\("([a-z.]+)"\)', repository.text(path))
    }
    assert written - KAFKA_NAMES.keys() - {"pybroker.testing"} == set()


@pytest.mark.parametrize(
    ("name", "kafkas"),
    [
        ("pybroker", "kafka"),
        ("pybroker.handlers", "kafka.server.KafkaApis"),
        ("pybroker.client.retrying", "org.apache.kafka.clients.retrying"),
        ("somebody.else", "somebody.else"),
    ],
)
def test_a_name_without_a_place_of_its_own_stands_below_the_nearest(name: str, kafkas: str) -> None:
    assert kafka_name(name) == kafkas


@pytest.mark.parametrize(("level", "name"), [(50, "FATAL"), (30, "WARN"), (25, "INFO"), (5, "TRACE"), (0, "TRACE")])
def test_levels_have_kafkas_names(level: int, name: str) -> None:
    assert level_name(level) == name


def test_a_level_holds_for_the_names_below_it_by_kafkas_tree(loggers: Loggers) -> None:
    loggers.change([LevelChange("kafka.server", "DEBUG"), LevelChange("kafka.server.ReplicaManager", "ERROR")])
    assert logging.getLogger("pybroker.broker").getEffectiveLevel() == logging.DEBUG
    assert logging.getLogger("pybroker.handlers").getEffectiveLevel() == logging.DEBUG
    assert logging.getLogger("pybroker.replica").getEffectiveLevel() == logging.ERROR
    assert logging.getLogger("pybroker.net").getEffectiveLevel() == logging.INFO
    levels = loggers.levels()
    assert next(iter(levels.items())) == ("root", "INFO")
    assert (levels["kafka.server.KafkaApis"], levels["kafka.network"]) == ("DEBUG", "INFO")


def test_a_level_that_is_taken_away_is_inherited_again(loggers: Loggers) -> None:
    loggers.change(
        [LevelChange("root", "WARN"), LevelChange("kafka", "ERROR"), LevelChange("org.apache.kafka", "FATAL")]
    )
    assert logging.getLogger("pybroker.net").getEffectiveLevel() == logging.ERROR
    assert logging.getLogger("pybroker.storage").getEffectiveLevel() == logging.CRITICAL
    loggers.change([LevelChange("kafka", None), LevelChange("org.apache.kafka", None)])
    assert {loggers.levels()[name] for name in ("root", "kafka.network", "org.apache.kafka")} == {"WARN"}
    assert logging.getLogger("pybroker.storage").getEffectiveLevel() == logging.WARNING


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (LevelChange("kafka.nothing", "INFO"), ErrorCode.INVALID_CONFIG, "Logger kafka.nothing does not exist!"),
        (
            LevelChange("kafka", "info"),
            ErrorCode.INVALID_CONFIG,
            (
                "Cannot set the log level of kafka to info as it is not a supported log level. Valid log levels are "
                "DEBUG, ERROR, FATAL, INFO, TRACE, WARN"
            ),
        ),
        (
            LevelChange("root", None),
            ErrorCode.INVALID_REQUEST,
            "Removing the log level of the root logger is not allowed",
        ),
    ],
)
def test_what_cannot_be_set_is_refused_in_kafkas_words(
    loggers: Loggers, change: LevelChange, code: ErrorCode, words: str
) -> None:
    assert loggers.fault([LevelChange("kafka", "DEBUG"), change]) == (code, words)
