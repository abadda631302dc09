"""Whose request is next: weighted fair queueing over connections.

Owns the order of control requests that wait for the loop. Each connection pays for the time that its requests took: one
whose requests are expensive waits behind those that cost little, however many expensive ones there are, and still gets
its share. Must not know requests, sockets or the loop; time is an argument, in seconds.

Source: A. Demers, S. Keshav, S. Shenker, "Analysis and Simulation of a Fair Queueing Algorithm" (SIGCOMM 1989). A
request starts at the greater of the virtual time and its connection's last finish, and finishes later by what it is
expected to cost; the earliest finish is served first. Virtual time passes as slowly as many connections share the loop.
While nothing waits it follows the clock, so that what a connection had is forgotten in as much time as it took.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Generic, TypeVar

Item = TypeVar("Item")

_FORGET_EVERY = 1.0
"""Seconds between two checks for connections whose last finish has passed."""


class Turns(Generic[Item]):
    """Items that wait, and how much of the loop's time their connections have had."""

    def __init__(self) -> None:
        # (finish, number, start, item); the number keeps the order of arrival among equals.
        self._waiting: list[tuple[float, int, float, Item]] = []
        self._arrived = 0
        self._virtual = 0.0
        # The start of what was handed out last, until it is charged.
        self._serving = 0.0
        # When virtual time last followed the clock. Invariant: it does so only while nothing waits.
        self._idle_since = 0.0
        # When connections finished last, in virtual time, those left out for which that has passed.
        self._finish: dict[int, float] = {}
        self._forgotten_at = 0.0

    def __len__(self) -> int:
        """How many items wait."""
        return len(self._waiting)

    def push(self, connection: int, item: Item, expected: float, now: float) -> None:
        """Let an item of a connection wait for its turn; it is `expected` to take so many seconds."""
        if not self._waiting:
            self._follow(now)
        start = max(self._virtual, self._finish.get(connection, 0.0))
        self._arrived += 1
        heappush(self._waiting, (start + expected, self._arrived, start, item))

    def pop(self) -> Item:
        """Return the item whose turn it is; IndexError when none waits. It is to be charged."""
        _finish, _number, self._serving, item = heappop(self._waiting)
        return item

    def charge(self, connection: int, seconds: float, now: float) -> None:
        """Let a connection pay for what was served last, which ended `now`."""
        self._finish[connection] = self._serving + seconds
        self._virtual += seconds / (len(self._waiting) + 1)
        self._idle_since = now

    def forget(self, connection: int) -> None:
        """Drop what is known of a connection that has ended."""
        self._finish.pop(connection, None)

    def _follow(self, now: float) -> None:
        self._virtual += max(0.0, now - self._idle_since)
        self._idle_since = now
        if self._finish and now - self._forgotten_at >= _FORGET_EVERY:
            self._forgotten_at = now
            self._finish = {it: finish for it, finish in self._finish.items() if finish > self._virtual}
