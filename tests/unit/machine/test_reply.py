"""A reply is heard in whatever order it is told and listened for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pybroker.machine.reply import Reply


def heard(reply: Reply) -> list[tuple[Any, Exception | None]]:
    """What is heard of a reply from now on."""
    said: list[tuple[Any, Exception | None]] = []
    reply.on_complete(lambda value, error: said.append((value, error)))
    return said


@pytest.mark.parametrize("set_first", [True, False])
def test_a_reply_is_heard_once(set_first: bool) -> None:
    reply = Reply()
    if set_first:
        reply(7, None)
        said = heard(reply)
    else:
        said = heard(reply)
        reply(7, None)
    assert said == [(7, None)]


@pytest.mark.parametrize("set_first", [True, False])
def test_a_reply_is_heard_as_it_was_changed(set_first: bool) -> None:
    reply = Reply()
    if set_first:
        reply(7, None)
    reply.through(lambda value: value + 1)
    said = heard(reply)
    if not set_first:
        reply(7, None)
    assert said == [(8, None)]


def test_a_change_that_fails_is_the_failure_of_the_reply() -> None:
    reply = Reply().through(lambda value: 1 // value)
    said = heard(reply)
    reply(0, None)
    assert isinstance(said[0][1], ZeroDivisionError)


def test_a_failure_is_not_changed() -> None:
    reply = Reply().through(lambda value: value + 1)
    said = heard(reply)
    failure = ValueError("no")
    reply(None, failure)
    assert said == [(None, failure)]


async def test_a_reply_can_be_awaited() -> None:
    reply = Reply()
    asyncio.get_running_loop().call_soon(reply, 7, None)
    assert await reply == 7
    failed = Reply()
    failed(None, ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        await failed
