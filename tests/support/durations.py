"""Durations of tests: the slowest of a run, the total of each folder, and all in `target/durations.json`.

Owns both plugins of `--times`. Totals include all processes of a run, so they can exceed the duration of the run.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.repository import ROOT

FILE = ROOT / "target" / "durations.json"
SLOWEST = 50


class Spent(NamedTuple):
    """Wall-clock seconds, and CPU seconds of the test's process and the child processes that it has reaped."""

    wall_s: float = 0.0
    cpu_s: float = 0.0

    def plus(self, other: Spent) -> Spent:
        """Return the sum of both."""
        return Spent(self.wall_s + other.wall_s, self.cpu_s + other.cpu_s)


def _cpu_s() -> float:
    return sum(os.times()[:4])


class CpuClock:
    """Adds to each report of a test, as `cpu_s`, the CPU time since the previous one. Runs in every process."""

    def __init__(self) -> None:
        self._before_s = _cpu_s()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Store the CPU time in the report. pytest-xdist forwards all attributes of a report."""
        report = yield
        now_s = _cpu_s()
        vars(report)["cpu_s"] = now_s - self._before_s
        self._before_s = now_s
        return report


class Durations:
    """Sums the reports of all processes in the one that prints. Setup and teardown count towards the test."""

    def __init__(self, file: Path = FILE) -> None:
        self._file = file
        self._tests: dict[str, Spent] = defaultdict(Spent)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count one phase of one test."""
        # pytest-xdist appends `@` and the group to the id of a test.
        at = report.nodeid.rfind("@")
        name = report.nodeid[:at] if at > report.nodeid.rfind("]") else report.nodeid
        self._tests[name] = self._tests[name].plus(Spent(report.duration, vars(report).get("cpu_s", 0.0)))

    def rooms(self) -> dict[str, Spent]:
        """Return the total of each folder such as `tests/unit`, the longest first."""
        sums: dict[str, Spent] = defaultdict(Spent)
        for name, spent in self._tests.items():
            folders = name.split("::")[0].split("/")[:-1]
            room = "/".join(folders[:2])
            sums[room] = sums[room].plus(spent)
        return dict(sorted(sums.items(), key=lambda one: -one[1].wall_s))

    def slowest(self) -> dict[str, Spent]:
        """Return all tests, slowest first."""
        return dict(sorted(self._tests.items(), key=lambda one: -one[1].wall_s))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the slowest tests and the sums, and write the file."""
        tests = self.slowest()
        self._file.parent.mkdir(exist_ok=True)
        written = {name: {"wall_s": round(one.wall_s, 3), "cpu_s": round(one.cpu_s, 3)} for name, one in tests.items()}
        self._file.write_text(json.dumps(written, indent=1) + "\n")
        terminalreporter.section(f"slowest {min(SLOWEST, len(tests))} of {len(tests)} tests, all in {self._file}")
        for title, rows in (("test", list(tests.items())[:SLOWEST]), ("room", list(self.rooms().items()))):
            terminalreporter.write_line(f"  wall s    cpu s  {title}")
            for name, spent in rows:
                terminalreporter.write_line(f"{spent.wall_s:8.1f} {spent.cpu_s:8.1f}  {name}")
