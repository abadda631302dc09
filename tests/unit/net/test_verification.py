"""The way of a Produce that waits for its transaction's coordinator, as the control plane sees it."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from pybroker.net import verification
from pybroker.net.verification import Answers, Asked, ask_nobody, verify
from pybroker.protocol.errors import ErrorCode

ASKED: Asked = ("me", 7, 3, 12, [("t", 0), ("t", 1)])


class Request(NamedTuple):
    """Which one waits."""

    connection: int = 5
    request: int = 9


@pytest.fixture
def said_below(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    answers: list[Any] = []
    monkeypatch.setattr(verification, "transaction_verified", lambda *said: answers.append(said))
    return answers


async def test_the_answers_go_down_to_the_request_that_waits(said_below: list[Any]) -> None:
    said: Answers = [None, (ErrorCode.NOT_ENOUGH_REPLICAS, "why")]

    async def ask(asked: Asked) -> Answers:
        assert asked is ASKED
        return said

    plane: Any = object()
    request: Any = Request()
    await verify(plane, request, ASKED, ask)
    assert said_below == [(plane, 5, 9, said)]


async def test_a_question_that_fails_refuses_all_partitions(
    said_below: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    async def ask(_asked: Asked) -> Answers:
        raise RuntimeError("broken")

    request: Any = Request()
    await verify(object(), request, ASKED, ask)  # type: ignore[arg-type]
    assert said_below[0][-1] == [(ErrorCode.UNKNOWN_SERVER_ERROR, None)] * 2
    assert "the transaction of me could not be verified" in caplog.text


async def test_where_there_is_nobody_to_ask_nothing_is_verified() -> None:
    assert await ask_nobody(ASKED) == [(ErrorCode.COORDINATOR_NOT_AVAILABLE, None)] * 2
