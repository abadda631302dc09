"""`Controls`: what a test can have a broker do with requests, by Kafka's names of APIs and errors.

Owns the words of that and nothing else. Every method may be called from any thread and returns at once, also while the
broker is stopped: what it sets is in force from the next request on, over restarts.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from pybroker.client.forking import register
from pybroker.testing.arguments import checked
from pybroker.testing.faults import Decide, Hold, Outcome, Refuse, scope_of
from pybroker.testing.names import code_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pybroker.protocol.errors import ErrorCode
    from pybroker.testing.faults import Fault
    from pybroker.testing.interceptor import Interceptor
    from pybroker.testing.requests import Request, RequestLog

# pytest ends the traceback of a wrong call at the line of the test.
__tracebackhide__ = True


class Only(TypedDict, total=False):
    """What narrows a fault to some requests of an API."""

    topic: str | None
    partition: int | None
    group: str | None
    client_id: str | None


class Controls(ABC):
    """Faults, versions and recording of one broker.

    `api` is an API's name such as "Produce", several of them, or None for all. `topic`, `partition`, `group` and
    `client_id` narrow a fault to requests that name them. `times` is how many requests it happens to, None for all
    until it is removed. Of several faults of a request the one that was made first happens, as long as it has `times`
    left.
    """

    _in_child = frozenset({"bootstrap_servers", "client_properties", "client_settings", "config", "directory"})
    """What a forked child may use: its clients connect to the broker."""

    def __init__(self, interceptor: Interceptor) -> None:
        self._interceptor = interceptor
        register(self)

    @checked
    def fail(
        self,
        api: str | Iterable[str] | None,
        code: ErrorCode | int | str,
        *,
        times: int | None = 1,
        message: str | None = None,
        delay: float = 0,
        **only: Unpack[Only],
    ) -> Fault:
        """Answer requests with an error, without handling them.

        `message` goes where the answer has room for words; `delay` is in seconds. A Produce is refused as a whole; of a
        Fetch the partitions that the fault is not about have nothing new.
        """
        return self._interceptor.add(scope_of(api, **only), Refuse(code_named(code), message), times, delay)

    @checked
    def delay(
        self, api: str | Iterable[str] | None, seconds: float, *, times: int | None = None, **only: Unpack[Only]
    ) -> Fault:
        """Handle requests `seconds` after they come; later ones of their connection wait behind them.

        Delays of several faults add up, and go before any other fault of the request.
        """
        return self._interceptor.add(scope_of(api, **only), Outcome.PROCEED, times, seconds)

    @checked
    def disconnect(
        self,
        api: str | Iterable[str] | None,
        *,
        after: bool = False,
        times: int | None = 1,
        delay: float = 0,
        **only: Unpack[Only],
    ) -> Fault:
        """Close the connection in place of handling a request; `after`: in place of its answer, when it is handled.

        With `after` the client cannot know whether its request was handled: it was.
        """
        outcome = Outcome.DISCONNECT_AFTER if after else Outcome.DISCONNECT
        return self._interceptor.add(scope_of(api, **only), outcome, times, delay)

    @checked
    def ignore(
        self, api: str | Iterable[str] | None, *, after: bool = False, times: int | None = 1, **only: Unpack[Only]
    ) -> Fault:
        """Never answer a request, nor what follows on its connection; `after`: but handle it.

        The client meets its own time-out, as with a network that has lost its packets.
        """
        outcome = Outcome.SILENCE_AFTER if after else Outcome.SILENCE
        return self._interceptor.add(scope_of(api, **only), outcome, times, 0)

    @checked
    def hold(self, api: str | Iterable[str] | None, *, times: int | None = None, **only: Unpack[Only]) -> Fault:
        """Let requests wait until `release()` of the returned fault; `wait()` returns when one has come."""
        return self._interceptor.add(scope_of(api, **only), Hold(), times, 0)

    @checked
    def intercept(
        self,
        api: str | Iterable[str] | None,
        function: Callable[[Request], Any],
        *,
        times: int | None = None,
        **only: Unpack[Only],
    ) -> Fault:
        """Have a function decide about requests. It runs on the broker's loop: it may be `async` and must not block.

        It returns None to have the request handled, an error code or its name, the response's message, or an `Outcome`.
        What it raises closes the connection, and is raised by `wait` and `remove` of the returned fault.
        """
        return self._interceptor.add(scope_of(api, **only), Decide(function), times, 0)

    @checked
    def limit_versions(self, **limits: tuple[int, int] | None) -> None:
        """Advertise and serve only these versions, as `Fetch=(4, 11)`; None takes the API away.

        What an earlier call has set is lifted; without arguments all versions are back. Connections are closed, as
        clients ask for versions when they connect.
        """
        self._interceptor.limit(limits)
        self._versions_changed()

    @contextlib.contextmanager
    def recording(self) -> Iterator[RequestLog]:
        """Record the requests that come in the block; `requests` has them, and those of earlier blocks."""
        self._interceptor.record(True)
        try:
            yield self.requests
        finally:
            self._interceptor.record(False)

    @property
    def requests(self) -> RequestLog:
        """The requests that were recorded, at most the last 1000."""
        return self._interceptor.requests

    def clear_faults(self) -> None:
        """End all faults, lift limits of versions, end recording, and forget what was recorded."""
        self._interceptor.clear()

    @abstractmethod
    def _versions_changed(self) -> None:
        """Have clients ask for versions again."""
