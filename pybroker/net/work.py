"""A request in work: what the pipeline knows of it until it is answered, and how its API is served.

Owns the shapes, and what of an API is looked up once; `pipeline` says what becomes of requests.
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


class Way(msgspec.Struct, frozen=True):
    """How one version of an API is served."""

    api: Api
    version: int
    request: Schema
    is_flexible: bool
    response: Schema
    prefix: bytes
    """What precedes its responses."""
    has_throttle_time: bool
    """Whether its responses have room for the time that the client is to wait."""
    counts: ApiCounts
    """What is counted of its requests."""


def build_way(api: Api, key: int, version: int, counts: ApiCounts) -> Way:
    """Look up what every request of a version needs."""
    response = response_class(key)
    return Way(
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
    """A request whose handler has not answered yet: a struct, as one is made for each request of a busy coordinator."""

    connection: int
    event: ControlRequest
    way: Way
    request: Any
    context: Any
    reply: Reply | None
    """What the handler has returned, as long as this wake-up may bring it; None when it is listened to, or awaited."""
    held: bool = False
    """Whether it has outlasted its wake-up: it waits for what others do, so it takes no room. Invariant: then the
    pipeline does not count it."""
    gone: bool = False
    """Whether its connection is closed."""


def refusal(error: Exception, max_elements: int) -> str:
    """Return the words for a request that is not served."""
    if isinstance(error, TooManyElements):
        return f"{error}: socket.request.max.elements={max_elements}"
    return str(error)


def failure(way: Way, request: Any, context: Any, error: Exception) -> Any:
    """Return the answer to a request whose handler has failed; None where none can be made."""
    way.counts.failures += 1
    try:
        return way.api.failed(request, context, error)
    except Exception:
        log.exception("%s: failed to make an error response", way.api.name)
        return None


def handle(way: Way, request: Any, context: Any) -> Any:
    """Return what the handler of an API returns; where the request's time counts, all that it takes is noted."""
    spent = context.time
    if spent is None:
        return way.api.handle(request, context)
    spent.begin()
    token = WATCH.set(spent)
    try:
        outcome = way.api.handle(request, context)
        if type(outcome) is Reply:
            spent.pause()
        elif not isinstance(outcome, bytes) and hasattr(outcome, "__await__"):
            spent.pause()
            return _Timed(outcome, spent)
        return outcome
    finally:
        WATCH.reset(token)


class _Timed:
    """A handler that waits for others: the time between its waits is noted."""

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
            except BaseException as error:  # noqa: BLE001 - it is the handler's
                failure = error
