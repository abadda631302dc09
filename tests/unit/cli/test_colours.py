from __future__ import annotations

import sys

import pytest

from pybroker.cli.colours import paint


def test_colours_are_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    assert paint("fail", "red") == "fail"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert paint("fail", "red") == "\033[31mfail\033[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert paint("fail", "red") == "fail"
