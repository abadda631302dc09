"""Tests of `pybroker.net.polling`."""

from __future__ import annotations

from pybroker.net.polling import Polling


def looks(polling: Polling, kind: str, found: list[bool]) -> int:
    """Have so many events of a kind come, which others follow or not; return after how many the loop has looked."""
    looked = 0
    for one in found:
        if polling.next_us(kind):
            looked += 1
            polling.note(kind, found=one)
    return looked


def test_a_new_kind_of_event_is_tried_once_and_then_seldom() -> None:
    polling = Polling(50)
    assert polling.next_us("heartbeat") == 50
    polling.note("heartbeat", found=False)
    assert looks(polling, "heartbeat", [False] * 330) == 10


def test_looks_that_pay_go_on_through_some_that_do_not() -> None:
    polling = Polling(50)
    assert looks(polling, "commit", [True] * 100) == 100
    assert looks(polling, "commit", [False, True] * 50) == 100
    assert looks(polling, "commit", [False] * 40) < 12
    assert looks(polling, "commit", [True] * 200) > 160, "a trial has found something"


def test_kinds_are_told_apart() -> None:
    polling = Polling(50)
    assert looks(polling, "end", [True] * 10) == 10
    assert looks(polling, "add", [False] * 10) == 1
    assert looks(polling, "end", [True] * 10) == 10


def test_zero_is_never() -> None:
    polling = Polling(0)
    assert looks(polling, "end", [True] * 100) == 0
