from __future__ import annotations

import pytest

from pybroker.cli.main import main


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("foo", "--date-format foo: the letter 'f' is not served; known are yMdHhmsSDEaZz, and text in quotes"),
        ("yyyy 'x", "--date-format yyyy 'x: a quote is not closed; '' stands for a quote itself"),
    ],
)
def test_a_date_format_is_judged_before_anything_is_read(
    capsys: pytest.CaptureFixture[str], pattern: str, words: str
) -> None:
    requested = ("--bootstrap-server", "127.0.0.1:1", "--topic", "t", "--num-records", "1")
    assert main(["consumer-perf-test", *requested, "--date-format", pattern]) == 1
    assert capsys.readouterr() == ("", f"pybroker consumer-perf-test: {words}\n")
