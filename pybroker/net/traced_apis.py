"""Traced APIs: each wraps another API and records spans of its requests.

Owns the sampling of requests, and the attributes of a span. Must not know the receiver of spans. Without tracing, these
wrappers are not made and cost nothing.

A span begins when the handler is called and ends with its response. It includes the handler's waits, but neither the
time in the queue nor the sending: the metrics have those for all requests.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

from pybroker.machine.reply import Reply
from pybroker.metrics.spans import Span

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from pybroker.metrics.spans import Spans
    from pybroker.net.dispatch import Api, Prepared


_MOST_CHARACTERS = 256
"""Maximum length of a string in a span: thousands of spans may be queued, and a client id may have 32 KB."""


def traced(apis: Mapping[int, Api], spans: Spans, ratio: float) -> dict[int, Api]:
    """Return wrappers of `apis` that record spans of the fraction `ratio` of their requests."""
    return {key: TracedApi(api, spans, ratio) for key, api in apis.items()}


class TracedApi:
    """An API that records spans."""

    def __init__(self, api: Api, spans: Spans, ratio: float) -> None:
        self._api = api
        self._spans = spans
        self._ratio = ratio
        self.name = api.name
        self.min_version = api.min_version
        self.max_version = api.max_version
        self.forwarded = api.forwarded

    @property
    def request_type(self) -> type[Any]:
        """The message that a request is decoded to."""
        return self._api.request_type

    def prepare(self, request: Any, context: Any) -> Prepared | None:
        """Return the part of a request to be forwarded; None to forward it whole."""
        return self._api.prepare(request, context)

    def failed(self, request: Any, context: Any, error: Exception) -> Any:
        """Return the response that reports an exception to the client."""
        return self._api.failed(request, context, error)

    def unsupported(self, context: Any) -> bytes | None:
        """Return the response to a version outside the served range, None to close the connection."""
        return self._api.unsupported(context)

    def handle(self, request: Any, context: Any) -> Any:
        """Return the response, ready-made bytes for it, or an awaitable of either."""
        if random.random() >= self._ratio:
            return self._api.handle(request, context)
        began_ns = time.time_ns()
        try:
            outcome = self._api.handle(request, context)
        except Exception as error:
            self._note(context, began_ns, error)
            raise
        if type(outcome) is Reply:
            return self._watch(outcome, context, began_ns)
        if not isinstance(outcome, bytes) and hasattr(outcome, "__await__"):
            return self._wait(outcome, context, began_ns)
        self._note(context, began_ns, None)
        return outcome

    def _watch(self, reply: Reply, context: Any, began_ns: int) -> Reply:
        """Record the span when `reply` is set. Return a reply that is set at the same time."""
        watched = Reply(in_slices=reply.in_slices)

        def complete(value: Any, error: Exception | None) -> None:
            self._note(context, began_ns, error)
            watched(value, error)

        reply.on_complete(complete)
        return watched

    async def _wait(self, outcome: Awaitable[Any], context: Any, began_ns: int) -> Any:
        failure: BaseException | None = None
        try:
            return await outcome
        except BaseException as error:  # also a cancelled request is recorded, as a failure
            failure = error
            raise
        finally:
            self._note(context, began_ns, failure)

    def _note(self, context: Any, began_ns: int, error: BaseException | None) -> None:
        origin = context.origin
        software = origin.software or ("", "")
        attributes: dict[str, str | int] = {
            "messaging.system": "kafka",
            "messaging.client.id": (origin.client_id or "")[:_MOST_CHARACTERS],
            "client.address": origin.peer_host,
            "client.port": origin.peer_port,
            "kafka.api.key": origin.api_key,
            "kafka.api.version": origin.api_version,
            "kafka.listener": origin.listener,
            "kafka.client.software.name": software[0][:_MOST_CHARACTERS],
            "kafka.client.software.version": software[1][:_MOST_CHARACTERS],
        }
        words = None if error is None else f"{type(error).__name__}: {error}"[:_MOST_CHARACTERS]
        self._spans.take(Span(self.name, began_ns, time.time_ns(), attributes, words))
