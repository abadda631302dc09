"""Whether the other end of a connection has closed it, as the system knows before the event loop does.

Owns one system call. Must not read: what arrived before the end is the event loop's to read.
"""

from __future__ import annotations

import select


def is_closed_by_peer(descriptor: int) -> bool:
    """Return whether the other end of a connected socket has closed the connection, or reset it."""
    poll = select.poll()
    poll.register(descriptor, select.POLLRDHUP)  # POLLHUP and POLLERR are reported in any case
    return bool(poll.poll(0))
