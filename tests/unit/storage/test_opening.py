from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from pybroker.storage.opening import Lane


def test_threads_share_a_lane_and_everything_is_opened_once() -> None:
    opened: list[int] = []
    together = threading.Barrier(2, timeout=20)

    def opening(number: int) -> Callable[[], None]:
        def open_one() -> None:
            if number < 2:
                together.wait()  # passes only when two threads are at work
            opened.append(number)

        return open_one

    lane = Lane(Path("d"), [opening(number) for number in range(50)])
    threads = [threading.Thread(target=lane.drain) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(opened) == list(range(50))
    assert len(lane) == 0


def test_a_recovery_is_told_in_steps_of_ten_percent(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pybroker.storage")
    read = [5_000_000]  # by recoveries before

    def opening(size: int) -> Callable[[], None]:
        def open_one() -> None:
            read[0] += size

        return open_one

    sizes = [1_000_000] * 50 + [50_000_000]
    Lane(Path("/logs"), [opening(size) for size in sizes], to_recover=sum(sizes), recovered=lambda: read[0]).drain()
    assert [record.getMessage() for record in caplog.records] == [
        *(
            f"recovery of log directory /logs: {percent} of 100 MB, {percent} of 51 partitions ({percent} %)"
            for percent in (10, 20, 30, 40, 50)
        ),
        "recovery of log directory /logs: 100 of 100 MB, 51 of 51 partitions (100 %)",
    ]


def test_a_log_that_takes_long_is_told_of_on_its_way(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pybroker.storage")
    read = [0]
    lane = Lane(Path("/logs"), [lambda: None], to_recover=1_000_000_000, recovered=lambda: read[0])
    for read[0] in (0, 90_000_000, 110_000_000, 150_000_000, 1_000_000_000):
        lane.tell()
    lane.drain()
    lane.tell()
    assert [record.getMessage().split(": ")[1] for record in caplog.records] == [
        "110 of 1000 MB, 0 of 1 partitions (11 %)",
        "1000 of 1000 MB, 0 of 1 partitions (99 %)",
        "1000 of 1000 MB, 1 of 1 partitions (100 %)",
    ]


def test_an_opening_without_recovery_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pybroker.storage")
    Lane(None, [lambda: None] * 3).drain()
    assert caplog.records == []
