from __future__ import annotations

from typing import Any

import pytest

from pybroker.streams.application.stream_threads import StreamThreads


class _Thread:
    """A thread that ends when the test ends it."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.is_started = self.is_stopped = self.has_ended = self.is_removed = self.is_current = False

    def start(self) -> None:
        self.is_started = True

    def stop(self) -> None:
        self.is_stopped = True


@pytest.fixture
def threads() -> StreamThreads:
    make: Any = _Thread
    return StreamThreads(make)


def test_a_new_thread_has_the_lowest_free_number(threads: StreamThreads) -> None:
    first, second, third = (threads.add() for _ in range(3))
    assert [thread and thread.index for thread in (first, second, third)] == [1, 2, 3]
    assert second is not None
    second.has_ended = True
    fourth, fifth = threads.add(), threads.add()
    assert [thread and thread.index for thread in (fourth, fifth)] == [2, 4]
    assert threads.take_ended() == [second]
    assert threads.all() == [first, third, fourth, fifth]


def test_the_current_thread_is_removed_last(threads: StreamThreads) -> None:
    first, second = threads.add(), threads.add()
    assert first is not None
    first.is_current = True  # type: ignore[misc]
    assert [threads.begin_removal(), threads.begin_removal(), threads.begin_removal()] == [second, first, None]


def test_no_thread_is_added_or_removed_while_all_stop(threads: StreamThreads) -> None:
    first = threads.add()
    assert first is not None
    threads.stop()
    assert first.is_stopped  # type: ignore[attr-defined]
    assert (threads.add(), threads.begin_removal()) == (None, None)
    assert not threads.has_ended()
    first.has_ended = True
    assert threads.has_ended()
    threads.take_ended()
    assert threads.has_ended()
