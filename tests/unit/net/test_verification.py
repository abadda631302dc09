"""The way of a Produce that waits for its transaction's coordinator, as the control plane sees it."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from pybroker.machine.reply import Reply
from pybroker.net import verification
from pybroker.net.verification import Requested, VerificationResults, query_none, verify
from pybroker.protocol.errors import ErrorCode

REQUESTED: Requested = ("me", 7, 3, 12, [("t", 0), ("t", 1)])


class Request(NamedTuple):
    """Which one waits."""

    connection: int = 5
    request: int = 9
    transaction: Requested = REQUESTED


class Begun:
    """A verification that has begun, and what it has asked of others."""

    def __init__(self, reply: Reply | None) -> None:
        plane: Any = object()
        request: Any = Request()
        self.plane, self.spawned = plane, list[Any]()
        verification.begin(plane, request, lambda _requested: reply, query_none, self.spawned.append)

    async def finish(self) -> None:
        """Do what is left."""
        for work in self.spawned:
            await work


@pytest.fixture
def reported_below(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    responses: list[Any] = []
    monkeypatch.setattr(verification, "transaction_verified", lambda *reported: responses.append(reported))
    return responses


async def test_the_answers_go_down_to_the_request_that_waits(reported_below: list[Any]) -> None:
    reported: VerificationResults = [None, (ErrorCode.NOT_ENOUGH_REPLICAS, "why")]

    async def query(requested: Requested) -> VerificationResults:
        assert requested is REQUESTED
        return reported

    plane: Any = object()
    request: Any = Request()
    await verify(plane, request, REQUESTED, query)
    assert reported_below == [(plane, 5, 9, reported)]


async def test_a_question_that_fails_refuses_all_partitions(
    reported_below: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    async def query(_requested: Requested) -> VerificationResults:
        raise RuntimeError("broken")

    request: Any = Request()
    await verify(object(), request, REQUESTED, query)  # type: ignore[arg-type]
    assert reported_below[0][-1] == [(ErrorCode.UNKNOWN_SERVER_ERROR, None)] * 2
    assert "Failed to verify the transaction of me" in caplog.text


async def test_where_there_is_nobody_to_ask_nothing_is_verified() -> None:
    assert await query_none(REQUESTED) == [(ErrorCode.COORDINATOR_NOT_AVAILABLE, None)] * 2


def test_what_the_own_coordinator_says_yes_to_goes_on_at_once(reported_below: list[Any]) -> None:
    begun = Begun(reply := Reply())
    assert reported_below == []
    reply(True, None)
    assert (reported_below, begun.spawned) == ([(begun.plane, 5, 9, [None, None])], [])


@pytest.mark.parametrize(("are_part", "error"), [(False, None), (None, RuntimeError("gone"))])
async def test_all_else_is_asked_for_as_of_another_broker(
    reported_below: list[Any], are_part: bool | None, error: Exception | None
) -> None:
    begun = Begun(reply := Reply())
    reply(are_part, error)
    assert reported_below == []
    await begun.finish()
    assert reported_below == [(begun.plane, 5, 9, [(ErrorCode.COORDINATOR_NOT_AVAILABLE, None)] * 2)]


async def test_without_a_coordinator_here_another_broker_is_asked(reported_below: list[Any]) -> None:
    begun = Begun(None)
    await begun.finish()
    assert len(reported_below) == 1
