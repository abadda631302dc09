"""How long a broker whose leadership was moved goes on answering: until its clients have found the new leaders.

Owns the wait of a controlled shutdown between the controller's word that it may stop and the end of its listeners. A
client that asks here once more is answered NOT_LEADER_OR_FOLLOWER, with the new leader (KIP-951), and not by a closed
connection. Must not know what leadership or a connection is: it reads counts (docs/adr/0055).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger("pybroker.broker")

QUIET_S = 0.2
"""A client that was refused asks for metadata, and asks the new leader after a retry.backoff.ms of 100 ms, or comes
back. So long without a refusal, nobody is on its way back.
"""
LONGEST_S = 2.0
"""Clients that come back for longer have no other leader to go to."""
_POLL_INTERVAL_S = 0.02


class MovedClients:
    """Sees clients go to other brokers. Used from one event loop."""

    def __init__(self, leads: Callable[[], bool], refused: Callable[[], int], now: Callable[[], float]) -> None:
        """`leads` returns whether this broker leads a partition, by the metadata in force here. `refused` returns how
        often it has answered that it does not lead. `now` returns seconds on a clock that never goes back.
        """
        self._leads = leads
        self._refused = refused
        self._now = now
        self._count = refused()
        self._changed_at = now()

    async def gone(self) -> bool:
        """Wait until they are gone, or `LONGEST_S` are over; return whether they are."""
        end = self._now() + LONGEST_S
        while not self._are_gone():
            if self._now() >= end:
                log.warning("controlled shutdown: clients still send requests for partitions that other brokers lead")
                return False
            await asyncio.sleep(_POLL_INTERVAL_S)
        return True

    def _are_gone(self) -> bool:
        count = self._refused()
        if count != self._count or self._leads():
            self._count, self._changed_at = count, self._now()
        return self._now() - self._changed_at >= QUIET_S
