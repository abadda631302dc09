"""Forwarding of requests from a broker to the active controller in Envelope requests.

Owns the timeout, and that a client's next request sees the changes of its previous one. Must not know the content of
requests: an API handles the parts that only this node can (`Prepared`). A forwarded API replaces the handler's API in
the dispatch table. The handler runs at the controller, which authorizes the request by the client's principal.

A request that waits for the controller does not count against `queued.max.requests`. The channel limits the requests in
flight. The response waits until this node's image has all records that were committed when it was made
(docs/adr/0042-forwarding-waits-for-the-image.md).
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from pybroker.controller.envelopes import build_envelope, open_response
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
"""Maximum time to forward a request, as in Kafka, unless the request has a shorter timeout."""
_ENVELOPE_BYTES = 1024
"""Upper bound of the bytes that an envelope adds to a request: header, principal and address."""


_REPORT_THROTTLING = frozenset((ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS))
"""The APIs that `controller_mutation_rate` throttles.

Their responses begin with `throttle_time_ms` in every version.
"""


class Channel(Protocol):
    """A channel to the active controller, whichever node it is."""

    async def send(
        self, request: EnvelopeRequest, response: type[EnvelopeResponse], *, timeout_ms: int
    ) -> EnvelopeResponse:
        """Return the active controller's response. Raises a `ControllerError` after `timeout_ms`."""


class Forwarding:
    """Serves the requests of APIs that the active controller handles. Used from one event loop."""

    def __init__(
        self,
        channel: Channel,
        leads: Callable[[], bool],
        published: Callable[[int], Awaitable[None]],
        *,
        max_request_bytes: int,
    ) -> None:
        """`leads` returns whether this node is the active controller.

        `published` waits until an offset of the metadata log is applied here. `max_request_bytes` is the controller's
        limit (`socket.request.max.bytes`).
        """
        self._channel = channel
        self._leads = leads
        self._published = published
        self._max_request_bytes = max_request_bytes
        self._in_progress: set[asyncio.Task[Any]] = set()

    def apply(self, apis: Mapping[int, Api]) -> dict[int, Api]:
        """Return the APIs of broker listeners, with a `ForwardedApi` for each API that the controller handles."""
        return {key: ForwardedApi(api, self) if api.forwarded else api for key, api in apis.items()}

    def serve(self, api: Api, request: Any, context: Any) -> Any:
        """Return the result of `api.handle`, called here if this node is the active controller, else there."""
        if self._leads():
            return self._decide(api, request, context)
        prepared = api.prepare(request, context)
        if prepared is not None and prepared.request is None:
            return prepared.complete(None)
        reply = Reply()
        task = asyncio.ensure_future(self._forward(request, context, prepared))
        self._in_progress.add(task)
        task.add_done_callback(partial(self._end, reply))
        return reply

    def close(self) -> None:
        """Cancel all forwarding. Waiting requests are rejected with NOT_CONTROLLER."""
        for task in self._in_progress:
            task.cancel()

    def _end(self, reply: Reply, task: asyncio.Task[Any]) -> None:
        self._in_progress.discard(task)
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
        except NotControllerError:  # another controller was elected meanwhile
            return await self._forward(request, context, None)
        return outcome

    async def _forward(self, request: Any, context: Any, prepared: Prepared | None) -> Any:
        """Return the controller's response as bytes, or a response that this node has completed."""
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
        """Return the controller's response, after this node's image has reached the controller's committed offset."""
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
        response = await self._channel.send(envelope, EnvelopeResponse, timeout_ms=timeout_ms)
        payload = open_response(header, response)
        try:
            async with asyncio.timeout(end - clock()):
                await self._published(response.committed_offset)
        except TimeoutError:
            # The change is committed. A client that does not see it yet retries, as with Kafka.
            return payload
        return payload


class ForwardedApi:
    """An API that the active controller handles, in a broker's dispatch table."""

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
        """Return the part of a request to be forwarded; None to forward it whole."""
        return self._api.prepare(request, context)

    def handle(self, request: Any, context: Any) -> Any:
        """Return the response of this node, the active controller's as bytes, or an awaitable of either."""
        return self._forwarding.serve(self._api, request, context)

    def failed(self, request: Any, context: Any, error: Exception) -> Any:
        """Return the response that reports an exception to the client."""
        return self._api.failed(request, context, error)

    def unsupported(self, context: Any) -> bytes | None:
        """Return the response to a version outside the served range, None to close the connection."""
        return self._api.unsupported(context)


def _message(event: ControlRequest, request: Any) -> bytes:
    """Return the encoded request, with no tagged fields in its header, as none are known."""
    tagged = b"\x00" if flexible(event.api_key, event.api_version) else b""
    return tagged + encode(request, event.api_version)


def _response(event: ControlRequest, payload: bytes) -> Any:
    at = len(response_prefix(event.api_key, event.api_version))
    response, _ = decode(response_class(event.api_key), payload, event.api_version, at)
    return response


def _wait_ms(event: ControlRequest, payload: bytes) -> int:
    """Return `throttle_time_ms` of a response, else 0: this node mutes the client for the controller (KIP-599)."""
    if event.api_key not in _REPORT_THROTTLING:
        return 0
    at = len(response_prefix(event.api_key, event.api_version))
    return int.from_bytes(payload[at : at + 4], "big", signed=True)


def _patience_ms(request: Any) -> int:
    requested = getattr(request, "timeout_ms", 0)
    return min(requested, _LONGEST_MS) if requested > 0 else _LONGEST_MS
