"""Spans of requests: each answer of a handler's, in each of its forms, ends one, and is what it was."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from pybroker.machine.reply import Reply
from pybroker.metrics.spans import Span
from pybroker.net.traced_apis import TracedApi, traced

CONTEXT = SimpleNamespace(
    origin=SimpleNamespace(
        client_id="c",
        peer_host="peer",
        peer_port=1,
        api_key=3,
        api_version=12,
        listener="PLAINTEXT",
        software=("lib", "1.0"),
    )
)


class Handler:
    """An API with one handler."""

    name, min_version, max_version, request_type, forwarded = "Metadata", 0, 13, object, True

    def __init__(self, handle: Callable[[], Any]) -> None:
        self._handle = handle

    def handle(self, request: Any, context: Any) -> Any:
        return self._handle()

    def prepare(self, request: Any, context: Any) -> Any:
        return "prepared"

    def failed(self, request: Any, context: Any, error: Exception) -> Any:
        return "failed"

    def unsupported(self, context: Any) -> bytes | None:
        return b"unsupported"


class Taken(list[Span]):
    """Spans that were taken."""

    def take(self, span: Span, /) -> None:
        self.append(span)


def made(handle: Callable[[], Any], ratio: float = 1.0) -> tuple[TracedApi, Taken]:
    taken = Taken()
    api = traced({3: Handler(handle)}, taken, ratio)[3]
    assert isinstance(api, TracedApi)
    return api, taken


def fail() -> Any:
    raise ValueError("why")


async def fail_later() -> Any:
    fail()


async def respond_later() -> str:
    return "answer"


@pytest.mark.parametrize("response", ["answer", b"bytes"])
def test_an_answer_at_once_ends_a_span(response: object) -> None:
    api, taken = made(lambda: response)
    assert api.handle(None, CONTEXT) == response
    (span,) = taken
    assert (span.name, span.error) == ("Metadata", None)
    assert span.began_ns <= span.ended_ns
    assert span.attributes == {
        "messaging.system": "kafka",
        "messaging.client.id": "c",
        "client.address": "peer",
        "client.port": 1,
        "kafka.api.key": 3,
        "kafka.api.version": 12,
        "kafka.listener": "PLAINTEXT",
        "kafka.client.software.name": "lib",
        "kafka.client.software.version": "1.0",
    }


async def test_an_answer_that_is_awaited_ends_it_when_it_is_there() -> None:
    api, taken = made(respond_later)
    outcome = api.handle(None, CONTEXT)
    assert taken == []
    assert await outcome == "answer"
    assert len(taken) == 1


@pytest.mark.parametrize("is_set", [True, False])
def test_a_reply_ends_it_when_it_is_set_and_is_handed_on(is_set: bool) -> None:
    reply = Reply(in_slices=True)
    if is_set:
        reply("answer", None)
    api, taken = made(lambda: reply)
    watched = api.handle(None, CONTEXT)
    assert (len(taken), watched.is_set, watched.in_slices) == (is_set, is_set, True)
    if not is_set:
        reply("answer", None)
    assert (watched.is_set, watched.value, watched.error, len(taken)) == (True, "answer", None, 1)


async def test_a_failure_in_each_form_is_that_of_the_span_too() -> None:
    for handle in (fail, fail_later):
        api, taken = made(handle)
        with pytest.raises(ValueError, match="why"):
            await api.handle(None, CONTEXT)
        assert [span.error for span in taken] == ["ValueError: why"]
    reply = Reply()
    api, taken = made(lambda: reply)
    watched, error = api.handle(None, CONTEXT), ValueError("why")
    reply(None, error)
    assert watched.error is error
    assert [span.error for span in taken] == ["ValueError: why"]


async def test_a_request_that_is_given_up_is_a_failure() -> None:
    api, taken = made(asyncio.get_running_loop().create_future)
    waiting = asyncio.ensure_future(api.handle(None, CONTEXT))
    asyncio.get_running_loop().call_soon(waiting.cancel)
    with pytest.raises(asyncio.CancelledError):
        await waiting
    (span,) = taken
    assert (span.error or "").startswith("CancelledError")


def test_a_request_that_is_not_chosen_is_handled_as_it_was() -> None:
    reply = Reply()
    api, taken = made(lambda: reply, ratio=0.0)
    assert api.handle(None, CONTEXT) is reply
    assert taken == []


def test_all_else_is_the_apis_own() -> None:
    api, _ = made(lambda: None)
    assert (api.name, api.min_version, api.max_version, api.request_type, api.forwarded) == (
        "Metadata",
        0,
        13,
        object,
        True,
    )
    assert (api.prepare(None, CONTEXT), api.failed(None, CONTEXT, ValueError()), api.unsupported(CONTEXT)) == (
        "prepared",
        "failed",
        b"unsupported",
    )


def test_what_a_client_says_takes_little_room_while_spans_wait() -> None:
    def refuse() -> Any:
        raise ValueError("x" * 30_000)

    long = vars(CONTEXT.origin) | {"client_id": "c" * 30_000, "software": ("s" * 30_000, "v" * 30_000)}
    api, taken = made(refuse)
    with pytest.raises(ValueError, match="x"):
        api.handle(None, SimpleNamespace(origin=SimpleNamespace(**long)))
    (span,) = taken
    texts = [*span.attributes.values(), span.error]
    assert max(len(text) for text in texts if isinstance(text, str)) == 256
