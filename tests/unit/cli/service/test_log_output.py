from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

import pytest

from pybroker.broker.loggers import LOGGERS
from pybroker.cli.errors import CommandError
from pybroker.cli.service.log_output import JsonLines, TextLines, open_log, set_levels


def record(words: str = "it is %s", *, failed: bool = False) -> logging.LogRecord:
    """A record of the network's logger."""
    try:
        raise OSError("no space")
    except OSError:
        exception = sys.exc_info() if failed else None
    return logging.LogRecord("pybroker.net", logging.WARNING, "", 1, words, ("so",), exception)


def test_a_line_of_text_has_kafkas_level_and_name_and_leaves_the_record_alone() -> None:
    one = record()
    assert TextLines().format(one).endswith(" WARN kafka.network: it is so")
    assert (one.name, one.levelname) == ("pybroker.net", "WARNING")


def test_a_line_of_json_is_one_line_also_with_an_exception() -> None:
    text = JsonLines().format(record("it is\n%s", failed=True))
    line = json.loads(text)
    assert "\n" not in text
    assert line["time"].endswith("Z")
    assert (line["level"], line["logger"], line["message"]) == ("WARN", "kafka.network", "it is\nso")
    assert "OSError: no space" in line["exception"]


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"--log-file .*/nowhere/x: No such file"):
        open_log(tmp_path / "nowhere" / "x", "text", size=1, kept=1)


def test_levels_are_pythons_or_kafkas_of_all_or_of_one_logger() -> None:
    set_levels(["warning", "kafka.network=trace"])
    assert LOGGERS.levels()["root"] == "WARN"
    assert LOGGERS.levels()["kafka.network"] == "TRACE"
    with pytest.raises(CommandError, match="--log-level: Cannot set the log level of root to LOUD"):
        set_levels(["loud"])
