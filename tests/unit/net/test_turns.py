from __future__ import annotations

import random

import pytest

from pybroker.net.turns import Turns


def served(turns: Turns[str], count: int) -> list[str]:
    return [turns.pop() for _ in range(count)]


def test_connections_that_owe_nothing_are_served_in_order_of_arrival() -> None:
    turns: Turns[str] = Turns()
    for connection, item in ((3, "a"), (1, "b"), (2, "c"), (1, "d")):
        turns.push(connection, item, 0.0, 0.0)
    assert len(turns) == 4
    assert served(turns, 4) == ["a", "b", "c", "d"]
    with pytest.raises(IndexError):
        turns.pop()


def test_who_has_had_much_waits_behind_who_has_not() -> None:
    turns: Turns[str] = Turns()
    turns.push(1, "heavy", 0.0, 0.0)
    turns.push(3, "other", 0.0, 0.0)
    assert turns.pop() == "heavy"
    turns.charge(1, 0.023, 0.023)
    turns.push(1, "heavy again", 0.0, 0.023)
    turns.push(2, "light", 0.0, 0.023)
    assert served(turns, 3) == ["other", "light", "heavy again"]


def test_what_is_expected_to_cost_much_waits_behind_what_is_not() -> None:
    turns: Turns[str] = Turns()
    for connection in range(100):
        turns.push(connection, "heavy", 0.023, 0.0)
    turns.push(100, "light", 0.0001, 0.0)
    assert served(turns, 2) == ["light", "heavy"]


@pytest.mark.parametrize(("later", "order"), [(0.1, ["light", "heavy"]), (1.0, ["heavy", "light"])])
def test_what_a_connection_had_is_forgotten_in_as_much_time_as_it_took(later: float, order: list[str]) -> None:
    turns: Turns[str] = Turns()
    turns.push(1, "heavy", 0.0, 10.0)
    turns.push(2, "light", 0.0, 10.0)
    assert turns.pop() == "heavy"
    turns.charge(1, 0.8, 10.8)
    assert turns.pop() == "light"
    turns.charge(2, 0.0, 10.8)
    turns.push(1, "heavy", 0.0, 10.8 + later)
    turns.push(2, "light", 0.0, 10.8 + later)
    assert served(turns, 2) == order


def test_a_connection_that_has_ended_is_forgotten() -> None:
    turns: Turns[str] = Turns()
    turns.push(1, "heavy", 0.0, 0.0)
    turns.push(2, "other", 0.0, 0.0)
    assert turns.pop() == "heavy"
    turns.charge(1, 0.5, 0.5)
    turns.forget(1)
    turns.forget(7)
    turns.push(1, "again", 0.0, 0.5)
    turns.push(3, "later", 0.0, 0.5)
    assert served(turns, 3) == ["other", "again", "later"]


def test_under_load_each_connection_gets_an_equal_share_of_time_whatever_its_requests_cost() -> None:
    """Three backlogged connections whose requests cost 1, 5 and 25 ms: in three seconds each has had about one."""
    rng, turns, now = random.Random(7), Turns[int](), 0.0
    costs = {1: 0.001, 2: 0.005, 3: 0.025}
    had = dict.fromkeys(costs, 0.0)
    for connection in costs:
        turns.push(connection, connection, 0.005, now)
    while now < 3.0:
        connection = turns.pop()
        seconds = costs[connection] * rng.uniform(0.9, 1.1)
        now += seconds
        had[connection] += seconds
        turns.charge(connection, seconds, now)
        turns.push(connection, connection, 0.005, now)
    assert all(share == pytest.approx(1.0, abs=0.06) for share in had.values()), had


def test_a_stream_of_new_connections_does_not_starve_an_expensive_request() -> None:
    turns, now = Turns[int](), 0.0
    turns.push(0, 0, 0.025, now)
    for connection in range(1, 10_000):
        turns.push(connection, connection, 0.0005, now)
        now += 0.0005
        if (one := turns.pop()) == 0:
            break
        turns.charge(one, 0.0005, now)
    assert now < 0.2
