"""The order of waiting requests: weighted fair queueing over connections.

Owns the order of control requests that wait for the loop. Each connection is charged for the time of its requests.
Connections with expensive requests wait behind those with cheap ones, and still get their share. Must not know
requests, sockets or the loop; time is an argument, in seconds.

Source: A. Demers, S. Keshav, S. Shenker, "Analysis and Simulation of a Fair Queueing Algorithm" (SIGCOMM 1989). The
start of a request is the greater of the virtual time and its connection's last finish. Its finish is the start plus its
expected cost. The request with the earliest finish is served first. Virtual time advances by the served time divided by
the number of waiting requests plus one. While no request waits, it follows the clock, so that a connection's charge
expires after as much time.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Generic, TypeVar

Item = TypeVar("Item")

_FORGET_EVERY = 1.0
"""Interval of the removal of connections whose last finish has passed, in seconds."""


class Turns(Generic[Item]):
    """The waiting items, and the charges of their connections."""

    def __init__(self) -> None:
        # (finish, number, start, item); the number keeps the order of arrival among equal finishes.
        self._waiting: list[tuple[float, int, float, Item]] = []
        self._arrived = 0
        self._virtual = 0.0
        # The start of the last popped item, until it is charged.
        self._serving = 0.0
        # The time when virtual time last followed the clock. Invariant: it does so only while nothing waits.
        self._idle_since = 0.0
        # The last finish of each connection in virtual time, without those that have passed.
        self._finish: dict[int, float] = {}
        self._forgotten_at = 0.0

    def __len__(self) -> int:
        """The number of waiting items."""
        return len(self._waiting)

    def push(self, connection: int, item: Item, expected: float, now: float) -> None:
        """Add an item of a connection. `expected` is its expected cost in seconds."""
        if not self._waiting:
            self._follow(now)
        start = max(self._virtual, self._finish.get(connection, 0.0))
        self._arrived += 1
        heappush(self._waiting, (start + expected, self._arrived, start, item))

    def pop(self) -> Item:
        """Remove and return the next item. Must be followed by `charge`. Raises IndexError if there is none."""
        _finish, _number, self._serving, item = heappop(self._waiting)
        return item

    def charge(self, connection: int, seconds: float, now: float) -> None:
        """Charge a connection for the last popped item, which was served in `seconds` and ended at `now`."""
        self._finish[connection] = self._serving + seconds
        self._virtual += seconds / (len(self._waiting) + 1)
        self._idle_since = now

    def forget(self, connection: int) -> None:
        """Remove the charge of a closed connection."""
        self._finish.pop(connection, None)

    def _follow(self, now: float) -> None:
        self._virtual += max(0.0, now - self._idle_since)
        self._idle_since = now
        if self._finish and now - self._forgotten_at >= _FORGET_EVERY:
            self._forgotten_at = now
            self._finish = {it: finish for it, finish in self._finish.items() if finish > self._virtual}
