"""Claims about `pybroker_spark.load.schedule`: which record is due when, whatever has been sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybroker_spark.load import Schedule, Step, deal, deal_by_weight


def drain(schedule: Schedule, looks: list[float], most: int = 10**9) -> list[tuple[float, float | None]]:
    """(when it was sent, when it was due) of each record, looking at these times."""
    sent: list[tuple[float, float | None]] = []
    for at in looks:
        while (portion := schedule.take(at, most)) is not None and portion.count:
            for number in range(portion.count):
                due = None if portion.first_s is None else portion.first_s + number * portion.every_s
                sent.append((at, due))
    return sent


def test_a_record_is_due_by_the_clock_and_not_by_those_before_it() -> None:
    schedule = Schedule([Step(rate=10)], records=5)
    first = schedule.take(0.0, 100)
    assert first is not None
    assert (first.count, first.first_s) == (1, 0.0)
    waiting = schedule.take(0.0, 100)
    assert waiting is not None
    assert (waiting.count, waiting.wait_s) == (0, pytest.approx(0.1))
    late = schedule.take(0.25, 100)
    assert late is not None
    assert (late.count, late.first_s, late.every_s) == (2, pytest.approx(0.1), pytest.approx(0.1))
    rest = schedule.take(100.0, 100)
    assert rest is not None
    assert (rest.count, rest.first_s) == (2, pytest.approx(0.3))
    assert schedule.take(100.0, 100) is None


def test_what_a_step_owes_goes_before_the_next_steps_records() -> None:
    schedule = Schedule([Step(1.0, 2), Step(1.0, 4)])
    sent = drain(schedule, [5.0])
    assert [due for _, due in sent] == pytest.approx([0.0, 0.5, 1.0, 1.25, 1.5, 1.75])
    assert schedule.take(5.0, 1) is None


def test_without_a_rate_records_have_no_time_and_end_with_the_step() -> None:
    schedule = Schedule([Step(seconds=2.0)])
    portion = schedule.take(1.9, 1000)
    assert portion is not None
    assert (portion.count, portion.first_s) == (1000, None)
    assert schedule.take(2.0, 1000) is None


def test_a_portion_is_no_larger_than_asked_for() -> None:
    schedule = Schedule([Step(rate=1000)], records=10)
    counts = []
    while (portion := schedule.take(1.0, 4)) is not None:
        counts.append(portion.count)
    assert counts == [4, 4, 2]


@given(
    st.lists(st.tuples(st.floats(0.1, 3), st.floats(1, 200)), min_size=1, max_size=4),
    st.lists(st.floats(0, 20), max_size=20),
    st.integers(1, 50),
)
def test_every_record_is_sent_once_and_never_before_it_is_due(
    steps: list[tuple[float, float]], looks: list[float], most: int
) -> None:
    schedule = Schedule([Step(seconds, rate) for seconds, rate in steps])
    sent = drain(schedule, [*sorted(looks), 100.0], most)
    assert len(sent) == sum(round(seconds * rate) for seconds, rate in steps)
    dues = [due for _, due in sent if due is not None]
    assert len(dues) == len(sent)
    assert all(due <= at + 1e-9 for (at, _), due in zip(sent, dues, strict=True))
    begins = [sum(seconds for seconds, _ in steps[:index]) for index in range(len(steps))]
    expected = [b + n / r for b, (s, r) in zip(begins, steps, strict=True) for n in range(round(s * r))]
    assert dues == pytest.approx(expected)


@given(st.integers(0, 10**12), st.lists(st.integers(0, 10**9), min_size=1, max_size=50))
def test_dealing_gives_all_and_is_fair(total: int, weights: list[int]) -> None:
    parts = deal_by_weight(total, weights)
    assert sum(parts) == total
    assert min(parts) >= 0
    if whole := sum(weights):
        assert all(abs(p - total * w / whole) <= 1 + 1e-6 * p for p, w in zip(parts, weights, strict=True))
    assert sum(deal(total, len(weights))) == total
    assert max(deal(total, len(weights))) - min(deal(total, len(weights))) <= 1
