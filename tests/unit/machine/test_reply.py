"""A reply calls its callback, whichever of the two is set first."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pybroker.machine.reply import Reply


def calls_of(reply: Reply) -> list[tuple[Any, Exception | None]]:
    """Give the reply a callback now, and return the list of its calls."""
    calls: list[tuple[Any, Exception | None]] = []
    reply.on_complete(lambda value, error: calls.append((value, error)))
    return calls


@pytest.mark.parametrize("set_first", [True, False])
def test_a_reply_calls_its_callback_once(set_first: bool) -> None:
    reply = Reply()
    if set_first:
        reply(7, None)
        calls = calls_of(reply)
    else:
        calls = calls_of(reply)
        reply(7, None)
    assert calls == [(7, None)]


@pytest.mark.parametrize("set_first", [True, False])
def test_the_callback_gets_the_reply_as_it_was_changed(set_first: bool) -> None:
    reply = Reply()
    if set_first:
        reply(7, None)
    reply.through(lambda value: value + 1)
    calls = calls_of(reply)
    if not set_first:
        reply(7, None)
    assert calls == [(8, None)]


def test_a_change_that_fails_is_the_failure_of_the_reply() -> None:
    reply = Reply().through(lambda value: 1 // value)
    calls = calls_of(reply)
    reply(0, None)
    assert isinstance(calls[0][1], ZeroDivisionError)


def test_a_failure_is_not_changed() -> None:
    reply = Reply().through(lambda value: value + 1)
    calls = calls_of(reply)
    failure = ValueError("no")
    reply(None, failure)
    assert calls == [(None, failure)]


async def test_a_reply_can_be_awaited() -> None:
    reply = Reply()
    asyncio.get_running_loop().call_soon(reply, 7, None)
    assert await reply == 7
    failed = Reply()
    failed(None, ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        await failed
