from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

from pybroker.storage.opening import Left, OpeningQueue, Recoveries

LARGE = 16_000_000  # enough to be recovered alone


def test_threads_share_a_lane_and_everything_is_opened_once() -> None:
    opened: list[int] = []
    together = threading.Barrier(2, timeout=60)

    def open_all(numbers: list[int]) -> None:
        if numbers[0] < 2:
            together.wait()  # passes only when two threads are at work
        opened.extend(numbers)

    queue = OpeningQueue(Path("d"), [(number, LARGE) for number in range(50)], open_all)
    threads = [threading.Thread(target=queue.drain) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(opened) == list(range(50))
    assert len(queue) == 0


@pytest.mark.parametrize(
    ("sizes", "taken"),
    [
        ([0] * 100, [32, 32, 32, 4]),
        ([LARGE] * 3, [1, 1, 1]),
        ([1, LARGE, 1, 1], [2, 2]),
        ([LARGE // 2] * 5, [2, 2, 1]),
        ([], []),
    ],
)
def test_many_are_opened_at_once_where_little_is_to_be_recovered(sizes: list[int], taken: list[int]) -> None:
    calls: list[int] = []
    OpeningQueue(Path("d"), [(size, size) for size in sizes], lambda some: calls.append(len(some))).drain()
    assert calls == taken


def test_a_recovery_is_logged_in_steps_of_ten_percent(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pybroker.storage")
    read = [5_000_000]  # by recoveries before

    def open_all(sizes: list[int]) -> None:
        read[0] += sum(sizes)

    sizes = [20_000_000] * 10 + [1_000_000] * 40 + [160_000_000]
    OpeningQueue(Path("/logs"), [(size, size) for size in sizes], open_all, recovered=lambda: read[0]).drain()
    assert [record.getMessage() for record in caplog.records] == [
        "recovery of log directory /logs: 40 of 400 MB, 2 of 51 partitions (10 %)",
        "recovery of log directory /logs: 80 of 400 MB, 4 of 51 partitions (20 %)",
        "recovery of log directory /logs: 120 of 400 MB, 6 of 51 partitions (30 %)",
        "recovery of log directory /logs: 160 of 400 MB, 8 of 51 partitions (40 %)",
        "recovery of log directory /logs: 200 of 400 MB, 10 of 51 partitions (50 %)",
        "recovery of log directory /logs: 400 of 400 MB, 51 of 51 partitions (100 %)",
    ]


def test_a_log_that_takes_long_is_reported_on_its_way(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pybroker.storage")
    read = [0]
    queue = OpeningQueue(Path("/logs"), [("t-0", 1_000_000_000)], lambda _: None, recovered=lambda: read[0])
    for read[0] in (0, 90_000_000, 110_000_000, 150_000_000, 1_000_000_000):
        queue.report()
    queue.drain()
    queue.report()
    assert [record.getMessage().split(": ")[1] for record in caplog.records] == [
        "110 of 1000 MB, 0 of 1 partitions (11 %)",
        "1000 of 1000 MB, 0 of 1 partitions (99 %)",
        "1000 of 1000 MB, 1 of 1 partitions (100 %)",
    ]


def test_an_opening_without_recovery_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pybroker.storage")
    OpeningQueue(None, [("t", 0)] * 3, lambda _: None).drain()
    assert caplog.records == []


def test_what_a_recovery_has_left_is_known_on_its_way() -> None:
    read, recoveries = [7], Recoveries()
    left: list[list[tuple[Path, Left]]] = []

    def open_all(some: list[int]) -> None:
        left.append(recoveries.left())
        read[0] += sum(some)

    recoveries.queue(OpeningQueue(Path("clean"), [(1, 1)], lambda _: None))
    sizes = [LARGE, LARGE, 5]
    queue = OpeningQueue(Path("d"), [(size, size) for size in sizes], open_all, recovered=lambda: read[0])
    recoveries.queue(queue).drain()
    assert [found for [(_, found)] in left] == [Left(3, 2 * LARGE + 5), Left(2, LARGE + 5), Left(1, 5)]
    assert recoveries.left() == [(Path("d"), Left(0, 0))]
