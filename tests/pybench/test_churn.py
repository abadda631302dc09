from __future__ import annotations

import re

import pytest

from pybench.churn import BOUNDED, Seen, judge
from tests.support import repository


def seen(*pairs: tuple[float, int]) -> list[Seen]:
    """Memory and descriptors, every minute from the first on."""
    return [Seen(60.0 * (1 + number), mib, descriptors) for number, (mib, descriptors) in enumerate(pairs)]


@pytest.mark.parametrize(
    ("later", "status", "verdict"),
    [((54.9, 130), 0, "flat"), ((55.1, 100), 1, "GROWING"), ((50.0, 165), 1, "GROWING")],
)
def test_memory_and_descriptors_may_grow_by_what_is_allowed(
    capsys: pytest.CaptureFixture[str], later: tuple[float, int], status: int, verdict: str
) -> None:
    assert judge(seen((50.0, 100), later, (50.0, 100)), 60, 5, 64) == status
    assert capsys.readouterr().out.startswith(f"{verdict}: 50.0 MiB and 100 descriptors after 60 s")


def test_what_was_before_it_has_settled_does_not_count() -> None:
    assert judge(seen((40.0, 100), (50.0, 100), (51.0, 100)), 120, 5, 64) == 0


def test_a_run_that_is_over_before_it_has_settled_is_not_judged(capsys: pytest.CaptureFixture[str]) -> None:
    assert judge(seen((40.0, 100)), 60, 5, 64) == 2
    assert "too short" in capsys.readouterr().err


def test_the_settings_that_bound_something_are_there() -> None:
    reference = repository.text("docs/reference/configs.md")
    named = {key for bound in BOUNDED.values() for key in re.findall(r"[a-z]+(?:\.[a-z]+)+", bound)}
    assert {key for key in named if f"`{key}`" not in reference} == set()
