"""Whether the other end of a connection has closed it, asked of the system: before the event loop has come to see it.

Owns one question without a wait. Must not read: what has arrived before the end is the loop's to take.
"""

from __future__ import annotations

import select


class HangUp:
    """The other end of a socket. POLLHUP and POLLERR, of a reset connection, are seen as well."""

    def __init__(self, descriptor: int) -> None:
        """Look at the descriptor of a socket that is connected."""
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLRDHUP)

    @property
    def is_seen(self) -> bool:
        """Whether it has closed the connection: a system call, some microseconds."""
        return bool(self._poll.poll(0))
