"""The time that another voter has for a response.

Owns one timer for a connection, and the rule by which the connection has failed (ADR 0099). Must not know what requests
contain. `Stream` and `SecuredStream` of this package close the connection.
"""

from __future__ import annotations

import asyncio
import fcntl
import sys
import termios
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_EARLY_S = 0.001
"""A loop's timers may fire this much early."""
_INT = bytes(4)


class ResponseTimer:
    """The requests of one connection that have no response yet. Responses arrive in the order of requests.

    The timer expires when the oldest request has had no response for the timeout. Each of these starts the timeout
    again:

    - the response to an earlier request arrives;
    - when the timeout ends, the socket has bytes that the loop has not read yet;
    - when the timeout ends, the peer's TCP has acknowledged more bytes of the oldest request than before.

    So a large request on a slow link has the time that it needs. A process that is stopped has the timeout once: its
    kernel has acknowledged the whole request by then.
    """

    def __init__(
        self, timeout_ms: int, descriptor: int, unsent: Callable[[], int], expired: Callable[[str], None]
    ) -> None:
        """Create a timer without requests.

        Args:
            timeout_ms: controller.quorum.request.timeout.ms.
            descriptor: the connection's socket, which is open until `stop`.
            unsent: returns the bytes that were written and are not in the kernel's send queue yet.
            expired: called once with the reason, on the loop's thread.
        """
        self._timeout_ms = timeout_ms
        self._descriptor = descriptor
        self._unsent = unsent
        self._expired = expired
        self._loop = asyncio.get_running_loop()
        # Bytes of each request without a response, and their sum.
        self._sizes: deque[int] = deque()
        self._bytes = 0
        # Invariant: while there are requests, when the timeout began, and how many bytes of the oldest request the
        # peer's TCP had not acknowledged then.
        self._began_s = 0.0
        self._unacknowledged = 0
        self._timer: asyncio.TimerHandle | None = None
        self._is_stopped = False

    def sent(self, size: int) -> None:
        """Add a request of `size` bytes, which is written at once."""
        if not self._sizes:
            self._begin(size)
        self._sizes.append(size)
        self._bytes += size
        if self._timer is None and not self._is_stopped:
            self._timer = self._loop.call_later(self._timeout_ms / 1000, self._check)

    def received(self) -> None:
        """Remove the oldest request: its response has arrived."""
        if self._sizes:
            self._bytes -= self._sizes.popleft()
            self._begin(self._sizes[0] if self._sizes else 0)

    def stop(self) -> None:
        """Do not expire, and do not use the socket any more."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin(self, unacknowledged: int) -> None:
        self._began_s = self._loop.time()
        self._unacknowledged = unacknowledged

    def _check(self) -> None:
        self._timer = None
        if not self._sizes:
            return
        due_s = self._began_s + self._timeout_ms / 1000
        if due_s - self._loop.time() <= _EARLY_S:
            if not self._has_progress():
                self.stop()
                self._expired(f"no response within controller.quorum.request.timeout.ms={self._timeout_ms}")
                return
            due_s = self._began_s + self._timeout_ms / 1000
        self._timer = self._loop.call_at(due_s, self._check)

    def _has_progress(self) -> bool:
        """Return whether the peer responds or acknowledges; then the timeout begins again."""
        of_others = self._bytes - self._sizes[0]
        unacknowledged = self._unsent() + self._queued(termios.TIOCOUTQ) - of_others
        if self._queued(termios.FIONREAD) or 0 < unacknowledged < self._unacknowledged:
            self._begin(unacknowledged)
            return True
        return False

    def _queued(self, which: int) -> int:
        """Return the bytes in the socket's receive queue (FIONREAD), or those without an acknowledgement (TIOCOUTQ)."""
        return int.from_bytes(fcntl.ioctl(self._descriptor, which, _INT), sys.byteorder, signed=True)
