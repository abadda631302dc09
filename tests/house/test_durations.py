"""The times that a run of tests prints and writes are those of all its processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.durations import Durations

SLOW = "tests/cluster/test_kill.py::test_a_kill[a@b]"


def report(name: str, when: Any, wall_s: float, cpu_s: float) -> pytest.TestReport:
    return pytest.TestReport(name, ("", 0, ""), {}, "passed", None, when, duration=wall_s, cpu_s=cpu_s)


class Terminal:
    """What a terminal is given, as lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.write_line = self.section = self.lines.append


def test_phases_are_added_up_by_test_and_by_folder_without_groups(tmp_path: Path) -> None:
    durations = Durations(tmp_path / "target" / "durations.json")
    for when, wall_s in (("setup", 2.0), ("call", 3.0), ("teardown", 0.5)):
        durations.pytest_runtest_logreport(report(f"{SLOW}@/tests/cluster/test_kill.py", when, wall_s, 0.25))
    for name in ("tests/unit/net/test_a.py::test_one", "tests/unit/net/test_b.py::test_two", "tests/unit/test_c.py::t"):
        durations.pytest_runtest_logreport(report(name, "call", 1.0, 0.5))
    terminal: Any = Terminal()
    durations.pytest_terminal_summary(terminal)
    written = json.loads((tmp_path / "target" / "durations.json").read_text())
    assert next(iter(written)) == SLOW
    assert written[SLOW] == {"wall_s": 5.5, "cpu_s": 0.75}
    assert len(written) == 4
    rooms = [line.split() for line in terminal.lines[-2:]]
    assert rooms == [["5.5", "0.8", "tests/cluster"], ["3.0", "1.5", "tests/unit"]]
    assert terminal.lines[0].startswith("slowest 4 of 4 tests")
