"""`Controls`: fault injection for the requests of a broker, by Kafka's names of APIs and errors.

Owns the methods only. Every method may be called from any thread and returns at once, also while the broker is
stopped. Its effect starts with the next request, and lasts over restarts.
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

# The traceback of an invalid call ends at the line of the test.
__tracebackhide__ = True


class Only(TypedDict, total=False):
    """Restricts a fault to some requests of an API."""

    topic: str | None
    partition: int | None
    group: str | None
    client_id: str | None


class Controls(ABC):
    """Faults, versions and recording of one broker.

    `api` is the name of an API such as "Produce", several of them, or None for all. `topic`, `partition`, `group` and
    `client_id` restrict a fault to requests that contain them. `times` is the number of requests that the fault applies
    to, None for all until it is removed. If several faults match a request, the oldest with remaining `times` applies.
    """

    _in_child = frozenset({"bootstrap_servers", "client_properties", "client_settings", "config", "directory"})
    """Attributes that a forked child may use: its clients connect to the broker."""

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
        """Respond to requests with an error, without handling them.

        `message` is the error message, where the response has a field for it; `delay` is in seconds. A Produce is
        rejected as a whole. Partitions of a Fetch that the fault does not apply to get no records.
        """
        return self._interceptor.add(scope_of(api, **only), Refuse(code_named(code), message), times, delay)

    @checked
    def delay(
        self, api: str | Iterable[str] | None, seconds: float, *, times: int | None = None, **only: Unpack[Only]
    ) -> Fault:
        """Handle requests `seconds` after they arrive. Later requests of the connection wait behind them.

        Delays of several faults add up, and precede any other fault of the request.
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
        """Close the connection instead of handling a request; `after`: handle it, and close instead of responding.

        With `after` the client cannot know that its request was handled.
        """
        outcome = Outcome.DISCONNECT_AFTER if after else Outcome.DISCONNECT
        return self._interceptor.add(scope_of(api, **only), outcome, times, delay)

    @checked
    def ignore(
        self, api: str | Iterable[str] | None, *, after: bool = False, times: int | None = 1, **only: Unpack[Only]
    ) -> Fault:
        """Never respond to a request, or to later ones of its connection; `after`: but handle it.

        The client runs into its own timeout, as when the network loses packets.
        """
        outcome = Outcome.SILENCE_AFTER if after else Outcome.SILENCE
        return self._interceptor.add(scope_of(api, **only), outcome, times, 0)

    @checked
    def hold(self, api: str | Iterable[str] | None, *, times: int | None = None, **only: Unpack[Only]) -> Fault:
        """Delay requests until `release()` of the returned fault; `wait()` returns when one has arrived."""
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

        It returns None to have the request handled, an error code or its name, the response message, or an
        `Outcome`. An exception closes the connection, and is raised by `wait` and `remove` of the returned fault.
        """
        return self._interceptor.add(scope_of(api, **only), Decide(function), times, 0)

    @checked
    def limit_versions(self, **limits: tuple[int, int] | None) -> None:
        """Advertise and serve only these versions, as `Fetch=(4, 11)`; None removes the API.

        Limits of an earlier call are removed; without arguments all versions are served. Connections are closed,
        since clients request the versions when they connect.
        """
        self._interceptor.limit(limits)
        self._versions_changed()

    @contextlib.contextmanager
    def recording(self) -> Iterator[RequestLog]:
        """Record the requests that arrive during the block; `requests` returns them, and those of earlier blocks."""
        self._interceptor.record(True)
        try:
            yield self.requests
        finally:
            self._interceptor.record(False)

    @property
    def requests(self) -> RequestLog:
        """Return the recorded requests, at most the last 1000."""
        return self._interceptor.requests

    def clear_faults(self) -> None:
        """Remove all faults and version limits, stop recording, and clear the recorded requests."""
        self._interceptor.clear()

    @abstractmethod
    def _versions_changed(self) -> None:
        """Make clients request the versions again."""
