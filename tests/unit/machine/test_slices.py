"""Work in slices: how long each is, in which turn of the loop, and what becomes of failures."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pybroker.machine.slices import FIRST_SLICE_S, SLICE_S, Sliced, Slices, each, whole


class Clock:
    """A clock that only work moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def work(clock: Clock, done: list[str], name: str, steps: int, step_s: float = SLICE_S / 4) -> Sliced[str]:
    for step in range(steps):
        clock.now += step_s
        done.append(f"{name}{step}")
        yield
    return name


async def test_short_work_is_done_at_once() -> None:
    clock, done = Clock(), list[str]()
    reply = Slices(clock).run(work(clock, done, "a", 3))
    assert (reply.is_set, reply.value, reply.in_slices) == (True, "a", True)


async def test_long_work_takes_turns_with_other_work() -> None:
    clock, done = Clock(), list[str]()
    slices = Slices(clock)
    first = slices.run(work(clock, done, "a", 10))
    assert done == ["a0", "a1", "a2", "a3"]
    second = slices.run(work(clock, done, "b", 6))
    # Others wait: the first slice of what comes is short.
    assert done[4:] == ["b0"]
    await second
    assert done[5:] == ["a4", "a5", "a6", "a7", "b1", "b2", "b3", "b4", "a8", "a9", "b5"]
    assert first.value == "a"


async def test_a_request_that_needs_a_moment_is_not_behind_long_work() -> None:
    clock, done = Clock(), list[str]()
    slices = Slices(clock)
    slices.run(work(clock, done, "a", 100))
    assert slices.run(work(clock, done, "b", 2, FIRST_SLICE_S / 4)).is_set


async def test_work_that_fails_raises_its_error_and_others_go_on() -> None:
    clock, done = Clock(), list[str]()
    slices = Slices(clock)

    def fail() -> Sliced[str]:
        clock.now += SLICE_S
        yield
        raise ValueError("wrong")

    failing, going_on = slices.run(fail()), slices.run(work(clock, done, "b", 6))
    with pytest.raises(ValueError, match="wrong"):
        await failing
    assert await going_on == "b"


def test_short_work_can_be_done_whole() -> None:
    taken: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(3):
            taken.append(number)
            yield number

    assert whole(each(lambda number: number * 2, numbers())) == [0, 2, 4]
    assert taken == [0, 1, 2]
