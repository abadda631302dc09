"""Timers ring at their deadline, and putting one off sets no alarm anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pybroker.machine.machine import Timer
from pybroker.machine.timer_queue import TimerQueue


class Loop:
    """A clock that is set by hand; counts the alarms that were set."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.rung: list[str] = []
        self.set_alarms = 0
        self._ring: Callable[[], None] | None = None
        self._at = 0
        self.timeout = TimerQueue(lambda: self.now_ms, self.ring, self.call_later)
        self.set_by_ms = 0
        """How far the machine's clock was set ahead, of an alarm of `with_another_clock`."""

    def with_another_clock(self) -> None:
        self.timeout = TimerQueue(lambda: self.now_ms + self.set_by_ms, self.ring, self.call_later, lambda: self.now_ms)

    def ring(self, due: Any) -> None:
        self.rung += [timer.key for timer in due]

    def call_later(self, delay: float, ring: Callable[[], None]) -> Any:
        self.set_alarms += 1
        self._ring, self._at = ring, self.now_ms + round(delay * 1000)
        loop = self

        class Handle:
            def cancel(self) -> None:
                loop._ring = None

        return Handle()

    def go_to(self, now_ms: int) -> None:
        while self._ring is not None and self._at <= now_ms:
            self.now_ms = max(self.now_ms, self._at)
            ring, self._ring = self._ring, None
            ring()
        self.now_ms = now_ms


def test_timers_ring_in_the_order_of_their_deadlines() -> None:
    loop = Loop()
    for key, deadline in (("c", 30), ("a", 10), ("b", 20), ("never", 99)):
        loop.timeout.set(Timer(key, deadline))
    loop.go_to(50)
    assert loop.rung == ["a", "b", "c"]
    assert "never" in loop.timeout
    assert "a" not in loop.timeout


def test_a_timer_that_is_put_off_rings_at_its_last_deadline_and_not_before() -> None:
    loop = Loop()
    loop.timeout.set(Timer("session", 10))
    for now in range(0, 100, 5):
        loop.go_to(now)
        loop.timeout.set(Timer("session", now + 10))
    assert loop.rung == []
    loop.go_to(104)
    assert loop.rung == []
    loop.go_to(105)
    assert loop.rung == ["session"]


def test_putting_a_timer_off_sets_no_alarm() -> None:
    loop = Loop()
    loop.timeout.set(Timer("session", 1000))
    for deadline in range(1001, 2000):
        loop.timeout.set(Timer("session", deadline))
    assert loop.set_alarms == 1


def test_a_timer_that_is_brought_forward_rings_earlier() -> None:
    loop = Loop()
    loop.timeout.set(Timer("late", 100))
    loop.timeout.set(Timer("late", 10))
    loop.go_to(10)
    assert loop.rung == ["late"]
    loop.go_to(200)
    assert loop.rung == ["late"]


def test_a_cancelled_timer_does_not_ring_and_leaves_no_alarm() -> None:
    loop = Loop()
    loop.timeout.set(Timer("a", 10))
    loop.timeout.set(Timer("b", 20))
    loop.timeout.set(Timer("a", None))
    loop.timeout.set(Timer("unknown", None))
    loop.go_to(15)
    assert loop.rung == []
    loop.timeout.set(Timer("b", None))
    assert loop._ring is None
    loop.timeout.set(Timer("a", 30))
    loop.go_to(30)
    assert loop.rung == ["a"]


def test_a_timer_that_gives_way_leaves_the_one_before_it_alone() -> None:
    loop = Loop()
    loop.timeout.set(Timer("join", 100, if_absent=True))
    loop.timeout.set(Timer("join", 200, if_absent=True))
    loop.go_to(100)
    assert loop.rung == ["join"]
    loop.timeout.set(Timer("join", 300, if_absent=True))
    loop.go_to(300)
    assert loop.rung == ["join", "join"]


def test_cancelled_timers_are_forgotten_long_before_their_deadlines() -> None:
    loop = Loop()
    loop.timeout.set(Timer("lasting", 10))
    for number in range(10_000):
        loop.timeout.set(Timer(number, 3_600_000))
        loop.timeout.set(Timer(number, None))
        assert loop.timeout.kept() <= 100
    loop.go_to(20)
    assert loop.rung == ["lasting"]


def test_what_is_not_cancelled_rings_after_others_were_forgotten() -> None:
    loop = Loop()
    for number in range(1000):
        loop.timeout.set(Timer(number, 1000 + number))
    for number in range(1000):
        if number % 10:
            loop.timeout.set(Timer(number, None))
    loop.timeout.set(Timer(0, 5000))
    loop.go_to(10_000)
    assert loop.rung == [*range(10, 1000, 10), 0]
    assert loop.timeout.kept() == 0


@pytest.mark.parametrize("set_by_ms", [3_600_000, -3_600_000], ids=["ahead", "back"])
def test_setting_the_machines_clock_moves_no_timer(set_by_ms: int) -> None:
    loop = Loop()
    loop.with_another_clock()
    loop.go_to(1000)
    loop.timeout.set(Timer("before", 1500))
    loop.set_by_ms = set_by_ms
    loop.timeout.set(Timer("after", 1600 + set_by_ms))
    loop.timeout.set(Timer("put off", 1300 + set_by_ms))
    loop.timeout.set(Timer("put off", 1700 + set_by_ms))
    loop.go_to(1499)
    assert loop.rung == []
    loop.go_to(1500)
    assert loop.rung == ["before"]
    loop.go_to(1700)
    assert loop.rung == ["before", "after", "put off"]
