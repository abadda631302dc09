from __future__ import annotations

import pytest

from pybroker.cli.main import main
from pybroker.testing import Broker

NO_SERVER = "127.0.0.1:1"


def run(server: str, *arguments: str) -> int:
    return main(["e2e-latency", "--bootstrap-server", server, "--topic", "t", "--producer-acks", "1", *arguments])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--num-records", "0"], "Value for --num-records must be a positive integer."),
        (["--num-records", "-5"], "Value for --num-records must be a positive integer."),
        (["--record-size", "-1"], "Value for --record-size must be a non-negative integer."),
        (["--record-key-size", "-1"], "Value for --record-key-size must be a non-negative integer."),
        (["--record-header-key-size", "-1"], "Value for --record-header-key-size must be a non-negative integer."),
        (
            ["--record-header-size", "-2"],
            "Value for --record-header-size must be a non-negative integer or -1 for null header value.",
        ),
        (["--num-headers", "-1"], "Value for --num-headers must be a non-negative integer."),
    ],
)
def test_numbers_that_make_no_sense_are_refused_in_the_words_of_kafkas_tool(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert run(NO_SERVER, "--num-records", "1", "--record-size", "1", *arguments) == 1
    assert capsys.readouterr() == ("", f"pybroker e2e-latency: {words}\n")


@pytest.mark.parametrize(("count", "size", "option"), [("0", "10", "num-records"), ("1", "-1", "record-size")])
def test_numbers_of_the_old_form_are_checked_too(
    capsys: pytest.CaptureFixture[str], count: str, size: str, option: str
) -> None:
    assert main(["e2e-latency", NO_SERVER, "t", count, "1", size]) == 1
    assert f"Value for --{option} must be a " in capsys.readouterr().err


def test_the_smallest_numbers_are_taken(capsys: pytest.CaptureFixture[str]) -> None:
    headers = ("--num-headers", "1", "--record-header-key-size", "0", "--record-header-size", "-1")
    with Broker() as broker:
        assert run(broker.bootstrap_servers, "--num-records", "1", "--record-size", "0", *headers) == 0
    assert "Avg latency: " in capsys.readouterr().out
