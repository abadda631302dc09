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

    lane = Lane(Path("d"), [opening(number) for number in range(50)], recovering=False)
    threads = [threading.Thread(target=lane.drain) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(opened) == list(range(50))
    assert len(lane) == 0


def test_a_recovery_is_told_in_steps_of_ten_percent(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pybroker.storage")
    Lane(Path("/logs"), [lambda: None] * 250, recovering=True).drain()
    assert [record.getMessage() for record in caplog.records][0::9] == [
        "recovery of log directory /logs: 25 of 250 partitions (10 %)",
        "recovery of log directory /logs: 250 of 250 partitions (100 %)",
    ]


def test_an_opening_without_recovery_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pybroker.storage")
    Lane(None, [lambda: None] * 3, recovering=False).drain()
    assert caplog.records == []
