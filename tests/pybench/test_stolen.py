from __future__ import annotations

import os
from pathlib import Path

import pytest

from pybench.stolen import Again, Stolen, stolen_s

_QUIET, _SPOILED = Stolen(0.01, 0.001), Stolen(0.5, 0.05)
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def test_stolen_time_is_the_eighth_field_of_the_first_line(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  1 2 3 4 5 6 7 250 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n")
    assert stolen_s(stat) == pytest.approx(250 * _TICK_S)


@pytest.mark.parametrize("text", [None, "", "cpu  1 2 3 4 5 6 7\n"])
def test_where_nobody_counts_it_none_is_stolen(tmp_path: Path, text: str | None) -> None:
    stat = tmp_path / "stat"
    if text is not None:
        stat.write_text(text)
    assert stolen_s(stat) == 0.0


@pytest.mark.parametrize(
    ("lost", "is_much"),
    [(_QUIET, False), (_SPOILED, True), (Stolen(_TICK_S, 0.5), False), (Stolen(5 * _TICK_S, 0.0049), False)],
)
def test_a_turn_is_spoiled_by_more_than_half_a_percent_and_a_tick(lost: Stolen, is_much: bool) -> None:
    assert lost.is_much is is_much


def test_a_round_is_taken_again_for_one_spoiled_turn_as_often_as_there_are_rounds() -> None:
    again = Again(2)
    assert not again.wants([_QUIET, _QUIET])
    assert again.wants([_QUIET, _SPOILED])
    assert again.wants([_SPOILED, _SPOILED])
    assert not again.wants([_SPOILED, _QUIET]), "what comes after that is counted"
    assert again.taken == 2
