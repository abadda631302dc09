"""When a client may ask and push, and how many clients are remembered, for how long."""

from __future__ import annotations

from pybroker.telemetry.client import Client
from pybroker.telemetry.instances import LEAST_EXPIRY_MS, Instance, Instances
from pybroker.telemetry.subscriptions import Requested


def instance(number: int = 1, interval_ms: int = 1000) -> Instance:
    client = Client(number.to_bytes(16, "big"), "app", "", "", "127.0.0.1", 1, "User:ANONYMOUS")
    return Instance(client, Requested(7, ("*",), interval_ms), version=1)


def test_a_client_asks_once_an_interval() -> None:
    one = instance()
    assert [one.note_get(now) for now in (0, 999, 1000)] == [True, False, True]


def test_the_first_push_after_a_question_comes_when_it_likes() -> None:
    one = instance()
    assert one.note_get(0)
    assert [one.note_push(now) for now in (1, 2, 1000, 1001)] == [True, False, False, True]
    assert not one.note_get(1500), "a push counts for the next question, too"
    assert one.note_get(2001)
    assert one.note_push(2002)


def test_a_push_without_a_question_is_taken_once_an_interval() -> None:
    one = instance()
    assert [one.note_push(now) for now in (5, 6, 1005)] == [True, False, True]


def test_the_latest_are_remembered() -> None:
    known = Instances(most=2)
    for number in (1, 2):
        known.keep(instance(number), number, 0)
    known.keep(instance(1), 1, 0)
    known.keep(instance(3), 3, 0)
    assert [number for number in (1, 2, 3) if known.get(number.to_bytes(16, "big"))] == [1, 3]
    assert len(known) == 2


def test_a_client_goes_with_its_connection_or_after_three_intervals() -> None:
    known = Instances()
    known.keep(instance(1), 10, 0)
    known.keep(instance(2, interval_ms=40_000), 11, 0)
    known.keep(instance(3), 12, 0)
    known.forget(12)
    known.forget(99)
    known.keep(instance(4), 13, LEAST_EXPIRY_MS)
    assert [number for number in range(5) if known.get(number.to_bytes(16, "big"))] == [2, 4]
