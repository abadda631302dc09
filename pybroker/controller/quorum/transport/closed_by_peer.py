"""Whether the peer has closed a connection, as the operating system knows before the event loop does.

Owns one system call. Must not read: the event loop reads the bytes that arrived before the end.
"""

from __future__ import annotations

import select


def is_closed_by_peer(descriptor: int) -> bool:
    """Return whether the peer of a connected socket has closed the connection, or reset it."""
    poll = select.poll()
    poll.register(descriptor, select.POLLRDHUP)  # POLLHUP and POLLERR are reported in any case
    return bool(poll.poll(0))
