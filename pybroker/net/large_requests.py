"""Large requests and responses: a thread decodes and encodes them, not the event loop.

Owns the size limits, the thread, and the order: one large request at a time is decoded and handled, so that the others
need only the memory of their frames. Must not know the content of requests.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from pybroker.machine.reply import Reply
from pybroker.net.work import handle, refusal
from pybroker.protocol.errors import MalformedMessage

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from pybroker.net.native import ControlRequest
    from pybroker.net.work import Work

log = logging.getLogger("pybroker.net")

LARGE_REQUEST = 64 * 1024
"""Requests larger than this number of bytes are decoded outside the loop: some thousand elements, a few milliseconds.
"""
LARGE_RESPONSE = 256 * 1024
"""Responses larger than this number of bytes are encoded outside the loop."""


class RequestsInWork(Protocol):
    """The part of the pipeline that large requests use."""

    def end(self, work: Work) -> None:
        """Remove a request whose response is about to be sent."""

    def complete(self, work: Work, response: Any, error: Exception | None) -> None:
        """Send the response to a request, or the error response to its handler's exception."""

    def close(self, event: ControlRequest, reason: str) -> None:
        """Close the connection of a request."""

    def free_slots(self, count: int) -> None:
        """Free the slots of completed requests."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine until the pipeline stops."""


class LargeRequests:
    """The large requests of one pipeline."""

    def __init__(self, max_elements: int) -> None:
        """`max_elements` is the maximum number of elements in a request."""
        self._max_elements = max_elements
        # The codec releases the interpreter lock.
        self._coder = ThreadPoolExecutor(1, thread_name_prefix="pybroker-codec")
        self._one_at_a_time = asyncio.Lock()

    def begin(self, requests: RequestsInWork, work: Work) -> None:
        """Start to decode and handle a request, and to send its response."""
        requests.spawn(self._serve(requests, work))

    def begin_response(self, requests: RequestsInWork, work: Work, response: Any) -> None:
        """Start to encode and send a response."""
        requests.spawn(self._encode(requests, work, response))

    def stop(self) -> None:
        """End the thread after its current work."""
        self._coder.shutdown(wait=False, cancel_futures=True)

    async def _serve(self, requests: RequestsInWork, work: Work) -> None:
        route, decode = work.route, work.event.decode
        loop = asyncio.get_running_loop()
        async with self._one_at_a_time:
            if work.removed:
                requests.end(work)
                requests.free_slots(1)
                return
            try:
                work.request = await loop.run_in_executor(
                    self._coder, decode, route.request, route.is_flexible, self._max_elements
                )
            except MalformedMessage as error:
                requests.end(work)
                requests.close(work.event, refusal(error, self._max_elements))
                return
            route.counts.requests += 1
            try:
                outcome = handle(route, work.request, work.context)
                if type(outcome) is Reply:
                    if outcome.in_slices:
                        outcome = await outcome
                elif not isinstance(outcome, bytes) and hasattr(outcome, "__await__"):
                    outcome = await outcome
            except Exception as error:  # noqa: BLE001  # every exception of a handler becomes an error response
                requests.complete(work, None, error)
                return
        if type(outcome) is Reply:
            outcome.on_complete(partial(requests.complete, work))
        else:
            requests.complete(work, outcome, None)

    async def _encode(self, requests: RequestsInWork, work: Work, response: Any) -> None:
        route, loop = work.route, asyncio.get_running_loop()
        try:
            encoded = await loop.run_in_executor(self._coder, route.response.encode, response, route.version)
        except Exception:
            log.exception("%s: failed to encode the response", route.api.name)
            requests.complete(work, None, None)
        else:
            requests.complete(work, route.prefix + encoded, None)
