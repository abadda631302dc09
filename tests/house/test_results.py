"""Results are the current ones: one file a row of the comparison, and a report that shows what they hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pybench import report
from pybench.scenario import read_scenarios
from tests.support import repository
from tests.support.repository import ROOT

RESULTS = "bench/results"


def test_a_row_has_one_file_and_every_file_is_a_rows() -> None:
    rows = [f"{RESULTS}/{scenario.id}.json" for scenario in read_scenarios()]
    found = repository.files_under(RESULTS)
    assert sorted(found) == sorted(rows), "git keeps earlier results; `pybench compare` replaces a row's file"


@pytest.mark.parametrize("path", repository.files_under(RESULTS, suffix=".json"))
def test_a_file_is_of_the_row_that_it_is_named_after(path: str) -> None:
    assert json.loads(repository.text(path))["scenario"] == Path(path).stem


def test_the_report_shows_the_results(tmp_path: Path) -> None:
    shown = report.write(ROOT / RESULTS, tmp_path / "REPORT.md").read_text(encoding="utf-8")
    assert shown == repository.text("bench/REPORT.md"), "run `pybench report`"
