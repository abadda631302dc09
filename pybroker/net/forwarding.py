"""Requests for the active controller that came to a broker: forwarded in an Envelope, and answered as it answers them.

Owns for how long they are tried, and that a client's next request sees what the one before it changed. Must not know
what a request asks for: its API may leave out what this node alone can judge (`Prepared`). Stands between the pipeline
and the handlers, as an API in the place of the handler's: that one runs at the controller, with the client's principal,
and judges its rights there.

A request that waits for the controller takes no room among those in work. It is one of its connection, and the channel
bounds how many are sent together. The answer waits until the image of this node has what was committed when it was made
(docs/adr/0042-forwarding-waits-for-the-image.md).
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from pybroker.controller.envelopes import build_envelope, open_answer
from pybroker.controller.errors import NotControllerError, UnforwardableError
from pybroker.machine.reply import Reply
from pybroker.protocol.api_keys import ApiKey
from pybroker.protocol.codec import decode, encode
from pybroker.protocol.header import RequestHeader, flexible, response_prefix
from pybroker.protocol.messages import response_class
from pybroker.protocol.messages.envelope import EnvelopeResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pybroker.net.dispatch import Api, Prepared
    from pybroker.net.native import ControlRequest
    from pybroker.protocol.messages.envelope import EnvelopeRequest

_LONGEST_MS = 60_000
"""Kafka's: for as long the controller is looked for, unless the request says that its client waits less."""
_ENVELOPE_BYTES = 1024
"""More than what an envelope adds to a request: its header, the principal, the address."""


_SAY_TO_WAIT = frozenset((ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS))
"""The APIs that `controller_mutation_rate` throttles; answers of every version begin with `throttle_time_ms`."""


class Channel(Protocol):
    """The way to the active controller, whichever it is."""

    async def send(
        self, request: EnvelopeRequest, response: type[EnvelopeResponse], *, timeout_ms: int
    ) -> EnvelopeResponse:
        """Return the active controller's answer; raises a `ControllerError` when none comes in time."""


class Forwarding:
    """Serves the requests of APIs that the active controller decides. Used from one event loop."""

    def __init__(
        self,
        channel: Channel,
        leads: Callable[[], bool],
        published: Callable[[int], Awaitable[None]],
        *,
        max_request_bytes: int,
    ) -> None:
        """`leads` returns whether this node is the active controller. `published` waits until an offset of the metadata
        log is in force here. `max_request_bytes` is what a controller reads at most (`socket.request.max.bytes`).
        """
        self._channel = channel
        self._leads = leads
        self._published = published
        self._max_request_bytes = max_request_bytes
        self._under_way: set[asyncio.Task[Any]] = set()

    def apply(self, apis: Mapping[int, Api]) -> dict[int, Api]:
        """Return the APIs of a broker's listeners, with those in their places that the active controller decides."""
        return {key: ForwardedApi(api, self) if api.forwarded else api for key, api in apis.items()}

    def serve(self, api: Api, request: Any, context: Any) -> Any:
        """Return what `api.handle` would: decided here while this node leads, else by the node that does."""
        if self._leads():
            return self._decide(api, request, context)
        prepared = api.prepare(request, context)
        if prepared is not None and prepared.request is None:
            return prepared.complete(None)
        reply = Reply()
        task = asyncio.ensure_future(self._forward(request, context, prepared))
        self._under_way.add(task)
        task.add_done_callback(partial(self._end, reply))
        return reply

    def close(self) -> None:
        """Forward nothing any more; what waits is answered NOT_CONTROLLER."""
        for task in self._under_way:
            task.cancel()

    def _end(self, reply: Reply, task: asyncio.Task[Any]) -> None:
        self._under_way.discard(task)
        if task.cancelled():
            reply(None, NotControllerError("this broker is stopping"))
            return
        error = task.exception()
        if error is None:
            reply(task.result(), None)
        elif isinstance(error, Exception):
            reply(None, error)

    async def _decide(self, api: Api, request: Any, context: Any) -> Any:
        try:
            outcome = api.handle(request, context)
            if not isinstance(outcome, bytes) and hasattr(outcome, "__await__"):
                outcome = await outcome
        except NotControllerError:  # another was elected meanwhile: it answers, as it does a request that comes now
            return await self._forward(request, context, None)
        return outcome

    async def _forward(self, request: Any, context: Any, prepared: Prepared | None) -> Any:
        """Return the controller's answer: its bytes, or a response that this node has completed."""
        event: ControlRequest = context.origin
        if event.size + _ENVELOPE_BYTES > self._max_request_bytes:
            raise UnforwardableError(
                f"a request of {event.size} bytes does not fit into an Envelope of {self._max_request_bytes} bytes "
                "(socket.request.max.bytes)"
            )
        message = event.message if prepared is None else _message(event, prepared.request)
        payload = await self._exchange(message, context, _patience_ms(request))
        context.wait_ms = _wait_ms(event, payload)
        return payload if prepared is None else prepared.complete(_response(event, payload))

    async def _exchange(self, message: bytes, context: Any, timeout_ms: int) -> bytes:
        """Return the controller's answer to a message, once the image here has what the controller had committed."""
        event: ControlRequest = context.origin
        header = RequestHeader(
            request_api_key=event.api_key,
            request_api_version=event.api_version,
            correlation_id=event.correlation_id,
            client_id=event.client_id,
        )
        envelope = build_envelope(header, message, context.principal, event.peer_host, by_token=context.by_token)
        clock = asyncio.get_running_loop().time
        end = clock() + timeout_ms / 1000
        answer = await self._channel.send(envelope, EnvelopeResponse, timeout_ms=timeout_ms)
        payload = open_answer(header, answer)
        try:
            async with asyncio.timeout(end - clock()):
                await self._published(answer.committed_offset)
        except TimeoutError:
            # It was done, and the response reports that: a client that does not see it yet retries, as with Kafka.
            return payload
        return payload


class ForwardedApi:
    """An API that the active controller decides, as the pipeline of a broker sees it."""

    forwarded = True

    def __init__(self, api: Api, forwarding: Forwarding) -> None:
        self._api = api
        self._forwarding = forwarding
        self.name = api.name
        self.min_version = api.min_version
        self.max_version = api.max_version

    @property
    def request_type(self) -> type[Any]:
        """The message that a request is decoded to."""
        return self._api.request_type

    def prepare(self, request: Any, context: Any) -> Prepared | None:
        """Return what is left of a request that is to be forwarded; None for all of it."""
        return self._api.prepare(request, context)

    def handle(self, request: Any, context: Any) -> Any:
        """Return the response that was made here, or its bytes from the active controller, or an awaitable of them."""
        return self._forwarding.serve(self._api, request, context)

    def failed(self, request: Any, context: Any, error: Exception) -> Any:
        """Return the response that reports an exception to the client."""
        return self._api.failed(request, context, error)

    def unsupported(self, context: Any) -> bytes | None:
        """Return the answer to a version outside the range, None to close the connection."""
        return self._api.unsupported(context)


def _message(event: ControlRequest, request: Any) -> bytes:
    """Return a request as it would have come, without tagged fields in its header: none of them is known."""
    tagged = b"\x00" if flexible(event.api_key, event.api_version) else b""
    return tagged + encode(request, event.api_version)


def _response(event: ControlRequest, payload: bytes) -> Any:
    at = len(response_prefix(event.api_key, event.api_version))
    response, _ = decode(response_class(event.api_key), payload, event.api_version, at)
    return response


def _wait_ms(event: ControlRequest, payload: bytes) -> int:
    """Return how long an answer says that the client is to wait: a quota of the controller is kept here (KIP-599)."""
    if event.api_key not in _SAY_TO_WAIT:
        return 0
    at = len(response_prefix(event.api_key, event.api_version))
    return int.from_bytes(payload[at : at + 4], "big", signed=True)


def _patience_ms(request: Any) -> int:
    asked = getattr(request, "timeout_ms", 0)
    return min(asked, _LONGEST_MS) if asked > 0 else _LONGEST_MS
