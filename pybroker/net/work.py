"""A request in work: its state in the pipeline until its response is sent, and how its API is served.

Owns these data types, and the call of a handler; `pipeline` owns the processing of requests.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import msgspec

from pybroker.machine.reply import Reply
from pybroker.machine.slices import WATCH
from pybroker.protocol.codec import schema_of
from pybroker.protocol.errors import TooManyElements
from pybroker.protocol.header import flexible, response_prefix
from pybroker.protocol.messages import response_class

if TYPE_CHECKING:
    from collections.abc import Generator

    from pybroker.metrics.requests import ApiCounts
    from pybroker.net.dispatch import Api
    from pybroker.net.native import ControlRequest
    from pybroker.protocol.native import Schema
    from pybroker.security.quotas import RequestTime


log = logging.getLogger("pybroker.net")


class Route(msgspec.Struct, frozen=True):
    """The data to serve one version of an API, looked up once."""

    api: Api
    version: int
    request: Schema
    is_flexible: bool
    response: Schema
    prefix: bytes
    """The header bytes before its responses."""
    has_throttle_time: bool
    """Whether its responses have the field `throttle_time_ms`."""
    counts: ApiCounts
    """The counters of its requests."""


def build_route(api: Api, key: int, version: int, counts: ApiCounts) -> Route:
    """Return the data to serve a version of an API."""
    response = response_class(key)
    return Route(
        api,
        version,
        schema_of(api.request_type),
        flexible(key, version),
        schema_of(response),
        response_prefix(key, version),
        "throttle_time_ms" in response.__struct_fields__,
        counts,
    )


class Work(msgspec.Struct, eq=False):
    """A request whose response is not complete. A struct, since one is made for each request of a busy coordinator."""

    connection: int
    event: ControlRequest
    route: Route
    request: Any
    context: Any
    reply: Reply | None
    """The handler's `Reply` while it may be set in this wake-up; None once it has a callback, or if a task waits."""
    held: bool = False
    """Whether the request waits longer than its wake-up. Invariant: it then does not count as in work."""
    removed: bool = False
    """Whether its connection is closed."""


def refusal(error: Exception, max_elements: int) -> str:
    """Return the reason why a request is not served."""
    if isinstance(error, TooManyElements):
        return f"{error}: socket.request.max.elements={max_elements}"
    return str(error)


def failure(route: Route, request: Any, context: Any, error: Exception) -> Any:
    """Return the response to a request whose handler raised; None if none can be made."""
    route.counts.failures += 1
    try:
        return route.api.failed(request, context, error)
    except Exception:
        log.exception("%s: failed to make an error response", route.api.name)
        return None


def handle(route: Route, request: Any, context: Any) -> Any:
    """Call an API's handler and return its result. Measures the time if the context has a `RequestTime`."""
    spent = context.time
    if spent is None:
        return route.api.handle(request, context)
    spent.begin()
    token = WATCH.set(spent)
    try:
        outcome = route.api.handle(request, context)
        if type(outcome) is Reply:
            spent.pause()
        elif not isinstance(outcome, bytes) and hasattr(outcome, "__await__"):
            spent.pause()
            return _Timed(outcome, spent)
        return outcome
    finally:
        WATCH.reset(token)


class _Timed:
    """An awaitable of a handler, which measures the time between its waits."""

    def __init__(self, handler: Any, spent: RequestTime) -> None:
        self._handler, self._spent = handler, spent

    def __await__(self) -> Generator[Any, None, Any]:
        steps, spent = self._handler.__await__(), self._spent
        failure: BaseException | None = None
        while True:
            spent.begin()
            try:
                waits_for = steps.send(None) if failure is None else steps.throw(failure)
            except StopIteration as done:
                return done.value
            spent.pause()
            failure = None
            try:
                yield waits_for
            except BaseException as error:  # noqa: BLE001 - passed to the handler
                failure = error
