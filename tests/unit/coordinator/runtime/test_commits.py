"""The wait for a commit: at once, later, or never."""

from __future__ import annotations

from functools import partial

import pytest

from pybroker.coordinator.runtime.commits import CommitWaits
from pybroker.coordinator.runtime.errors import NotCoordinatorError
from tests.support.counting import MemoryLog


def test_what_is_settled_is_committed_and_waits_for_nothing() -> None:
    log = MemoryLog(1)
    assert CommitWaits().committed(log, 1, lambda: None) is None
    assert log.tickets == []


def test_an_append_is_committed_when_it_is_reported_as_settled() -> None:
    log, commits = MemoryLog(1, 2), CommitWaits()
    happened: list[str] = []

    def note(name: str, _value: None, error: Exception | None) -> None:
        happened.append(f"{name}: {error}")

    log.synced = 0
    for name, end_offset in (("first", 1), ("second", 2)):
        reply = commits.committed(log, end_offset, partial(happened.append, f"after the {name}"))
        assert reply is not None
        reply.on_complete(partial(note, name))
    first, second = log.tickets
    assert happened == []
    log.synced = 2
    commits.append_completed(second)
    commits.append_completed(first)
    assert happened == ["second: None", "after the second", "first: None", "after the first"]


async def test_an_append_that_could_not_be_settled_is_not_committed() -> None:
    log, commits = MemoryLog(1), CommitWaits()
    log.synced = 0
    reply = commits.committed(log, 1, lambda: None)
    commits.append_completed(log.tickets.pop())
    assert reply is not None
    with pytest.raises(NotCoordinatorError, match="could not be synced"):
        await reply


def test_tickets_of_several_logs_are_different() -> None:
    logs, commits = [MemoryLog(1), MemoryLog(1)], CommitWaits()
    for log in logs:
        log.synced = 0
        commits.committed(log, 1, lambda: None)
    assert len({ticket for log in logs for ticket in log.tickets}) == 2
