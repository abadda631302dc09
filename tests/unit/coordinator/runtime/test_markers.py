"""The wait of markers until they are committed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from pybroker.coordinator.runtime.commits import CommitWaits
from pybroker.coordinator.runtime.markers import Markers

TIMED_OUT = 7  # REQUEST_TIMED_OUT


class Log:
    """Takes markers, and commits them when it is said."""

    def __init__(self, *, at_once: bool) -> None:
        self.at_once = at_once
        self.tickets: asyncio.Queue[int] = asyncio.Queue()
        self.appends: list[int] = []

    def append(self, ended: Sequence[Any], ticket: int) -> Appended:
        self.tickets.put_nowait(ticket)
        self.appends.append(len(ended))
        return Appended(self, len(ended), is_awaited=not self.at_once)


class Appended:
    """What became of markers of such a log."""

    def __init__(self, log: Log, count: int, *, is_awaited: bool) -> None:
        self._log = log
        self._count = count
        self.is_awaited = is_awaited

    def error_codes(self) -> list[int]:
        return [0 if self._log.at_once else TIMED_OUT] * self._count


def markers(log: Log, commits: CommitWaits, timeout_ms: int = 60_000) -> Markers:
    return Markers(log.append, commits, timeout_ms=lambda: timeout_ms)


def transactions(count: int) -> list[Any]:
    return [object() for _ in range(count)]


async def test_markers_that_are_committed_at_once_wait_for_nothing() -> None:
    log = Log(at_once=True)
    assert await markers(log, CommitWaits()).write(transactions(450)) == [0] * 450
    assert log.appends == [200, 200, 50]
    assert await markers(log, CommitWaits()).write([]) == []


async def test_the_answer_waits_for_every_append() -> None:
    log, commits = Log(at_once=False), CommitWaits()
    writing = asyncio.create_task(markers(log, commits).write(transactions(201)))
    first, second = await log.tickets.get(), await log.tickets.get()
    commits.append_completed(second)
    waited, _ = await asyncio.wait([writing], timeout=0)
    assert not waited
    log.at_once = True
    commits.append_completed(first)
    assert await writing == [0] * 201


async def test_what_is_not_committed_in_time_is_said_and_may_be_committed_later() -> None:
    log, commits = Log(at_once=False), CommitWaits()
    assert await markers(log, commits, timeout_ms=1).write(transactions(1)) == [TIMED_OUT]
    commits.append_completed(log.tickets.get_nowait())


async def test_a_coordinator_beside_the_partitions_is_answered_without_a_task() -> None:
    log, reported = Log(at_once=True), list[list[int]]()
    markers(log, CommitWaits()).begin(transactions(3), reported.append)
    assert (reported, log.appends) == ([[0, 0, 0]], [3])


async def test_it_is_answered_once_all_are_committed() -> None:
    log, commits, reported = Log(at_once=False), CommitWaits(), list[list[int]]()
    markers(log, commits).begin(transactions(2), reported.append)
    assert reported == []
    log.at_once = True
    commits.append_completed(log.tickets.get_nowait())
    assert reported == [[0, 0]]


async def test_it_is_answered_once_when_that_takes_too_long() -> None:
    log, commits = Log(at_once=False), CommitWaits()
    reported: asyncio.Queue[list[int]] = asyncio.Queue()
    markers(log, commits, timeout_ms=1).begin(transactions(1), reported.put_nowait)
    assert await reported.get() == [TIMED_OUT]
    log.at_once = True
    commits.append_completed(log.tickets.get_nowait())
    assert reported.empty()
