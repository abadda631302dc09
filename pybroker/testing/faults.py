"""`Fault`: a fault for the next requests of some APIs, and the number of requests that it has applied to.

Owns the requests that a fault applies to, and its count. Must not know how requests are responded to: that is
`pybroker.testing.interceptor`. Any thread may create, read and remove faults.
"""

from __future__ import annotations

import enum
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from pybroker.testing import made_faults
from pybroker.testing.arguments import checked
from pybroker.testing.names import api_named
from pybroker.testing.requests import names_groups, names_topics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType
    from typing import Self

    from pybroker.handlers.registry import RegisteredApi
    from pybroker.protocol.errors import ErrorCode
    from pybroker.testing.requests import Request

# The traceback of an invalid call ends at the line of the test.
__tracebackhide__ = True


class Outcome(enum.Enum):
    """The handling of a request."""

    PROCEED = "it is handled and answered"
    DISCONNECT = "the connection is closed before it is handled"
    DISCONNECT_AFTER = "it is handled, and the connection is closed in place of the answer"
    SILENCE = "it is not handled, and the connection is not answered any more"
    SILENCE_AFTER = "it is handled, and the connection is not answered any more"


class Refuse(NamedTuple):
    """Respond with this error instead of handling the request."""

    code: ErrorCode
    message: str | None


class Decide(NamedTuple):
    """A function of the test decides."""

    function: Callable[[Request], Any]


class Hold(NamedTuple):
    """Delay the request until `Fault.release`."""


class Scope(NamedTuple):
    """The requests that a fault applies to: None matches any."""

    apis: tuple[RegisteredApi, ...] | None
    topic: str | None
    partition: int | None
    group: str | None
    client_id: str | None

    def has(self, request: Request) -> bool:
        """Return whether it contains a request."""
        if self.apis is not None and all(api.key != request.api_key for api in self.apis):
            return False
        if self.client_id is not None and request.client_id != self.client_id:
            return False
        if self.group is not None and self.group not in request.groups:
            return False
        if self.topic is None:
            return True
        indexes = request.partitions.get(self.topic)
        return indexes is not None and (self.partition is None or self.partition in indexes)

    def concerns(self, topic: str, partition: int) -> bool:
        """Return whether the fault applies to this partition of a request."""
        return self.topic in (None, topic) and self.partition in (None, partition)


class Fault:
    """One fault, active from its creation until it has applied to `times` requests or is removed.

    As a context manager it is removed at the end of the block.
    """

    def __init__(
        self,
        scope: Scope,
        outcome: Outcome | Refuse | Decide | Hold,
        times: int | None,
        delay_s: float,
        changed: Callable[[Fault], None],
    ) -> None:
        """`times` None: until it is removed. `changed` is called when it has ended or is released."""
        self.scope = scope
        self.outcome = outcome
        self.delay_s = delay_s
        self.released = threading.Event()
        self._left = times
        self._fired = 0
        self._error: BaseException | None = None
        self._on_change = changed
        self._changed = threading.Condition()
        # Whether the test has read the count.
        self._is_read = False
        made_faults.note(self)

    def __repr__(self) -> str:
        apis = "any" if self.scope.apis is None else ", ".join(api.name for api in self.scope.apis)
        left = "any number of" if self._left is None else self._left
        return f"<fault of {apis}: {self.outcome}, {self._fired} fired, {left} left>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.remove()

    @property
    def fired(self) -> int:
        """Return the number of requests that it has applied to."""
        self._is_read = True
        return self._fired

    @property
    def never_happened(self) -> bool:
        """Whether it has applied to no request, and the test has neither read the count nor waited for it."""
        return self._fired == 0 and not self._is_read

    @property
    def active(self) -> bool:
        """Whether it may apply to another request."""
        return self._left != 0

    def take(self) -> bool:
        """Count a request, and return whether the fault applies to it."""
        with self._changed:
            if self._left == 0:
                return False
            if self._left is not None:
                self._left -= 1
            self._fired += 1
            ended = self._left == 0
            self._changed.notify_all()
        if ended:
            self._on_change(self)
        return True

    def failed(self, error: BaseException) -> None:
        """Record the exception of the test's function, for `wait` and `remove` to raise."""
        with self._changed:
            self._error = error
            self._changed.notify_all()

    def remove(self) -> None:
        """Remove it, and continue its delayed requests. Raises the error of a function given to `Broker.intercept`."""
        with self._changed:
            was_active, self._left = self._left != 0, 0
        self.release()
        if was_active:
            self._on_change(self)
        self._raise()

    def release(self) -> None:
        """Continue its delayed requests, and delay no later ones."""
        self.released.set()
        self._on_change(self)

    @checked
    def wait(self, times: int = 1, *, timeout: float = 10) -> None:
        """Wait until it has applied to `times` requests. Raises TimeoutError after `timeout` seconds.

        It blocks: in an event loop use `await asyncio.to_thread(fault.wait)`.
        """
        self._is_read = True
        ends = time.monotonic() + timeout
        with self._changed:
            while self._fired < times and self._error is None:
                if not self._changed.wait(ends - time.monotonic()) and time.monotonic() >= ends:
                    raise TimeoutError(f"{self!r} did not happen {times} times within {timeout} s")
        self._raise()

    def _raise(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error


def scope_of(
    apis: str | Iterable[str] | None,
    *,
    topic: str | None = None,
    partition: int | None = None,
    group: str | None = None,
    client_id: str | None = None,
) -> Scope:
    """Return the scope of a test's arguments. Raises ValueError for invalid names."""
    found = None if apis is None else tuple(api_named(name) for name in ((apis,) if isinstance(apis, str) else apis))
    if found == ():
        raise ValueError("api=[]: expected an API's name such as 'Produce', several of them, or None for all")
    if partition is not None and topic is None:
        raise ValueError(f"partition={partition} needs a topic; pass the topic as well")
    for api in found or ():
        if topic is not None and not names_topics(api):
            raise ValueError(f"{api.name} requests contain no topics, so topic={topic!r} would never match")
        if group is not None and not names_groups(api):
            raise ValueError(f"{api.name} requests contain no groups, so group={group!r} would never match")
    return Scope(found, topic, partition, group, client_id)
