"""The time that a broker still serves after its leadership was moved: until its clients have found the new leaders.

Owns the wait of a controlled shutdown between the controller's permission to stop and the end of the listeners. A
client that sends another request receives NOT_LEADER_OR_FOLLOWER with the new leader (KIP-951), instead of a closed
connection. Must not know partitions or connections: it reads counters (docs/adr/0055).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger("pybroker.broker")

QUIET_S = 0.2
"""Seconds without a rejected request after which all clients have moved.

A rejected client requests metadata, and retries after a retry.backoff.ms of 100 ms.
"""
LONGEST_S = 2.0
"""Maximum wait in seconds. Clients that still send requests have no other leader."""
_POLL_INTERVAL_S = 0.02


class MovedClients:
    """Detects when clients have moved to other brokers. Used from one event loop."""

    def __init__(self, leads: Callable[[], bool], refused: Callable[[], int], now: Callable[[], float]) -> None:
        """`leads` returns whether this broker is the leader of any partition, by its applied metadata.

        `refused` returns the number of NOT_LEADER_OR_FOLLOWER errors so far. `now` returns seconds of a monotonic
        clock.
        """
        self._leads = leads
        self._refused = refused
        self._now = now
        self._count = refused()
        self._changed_at = now()

    async def removed(self) -> bool:
        """Wait until all clients have moved, at most `LONGEST_S`. Return whether they have."""
        end = self._now() + LONGEST_S
        while not self._are_removed():
            if self._now() >= end:
                log.warning("controlled shutdown: clients still send requests for partitions that other brokers lead")
                return False
            await asyncio.sleep(_POLL_INTERVAL_S)
        return True

    def _are_removed(self) -> bool:
        count = self._refused()
        if count != self._count or self._leads():
            self._count, self._changed_at = count, self._now()
        return self._now() - self._changed_at >= QUIET_S
