"""The block of producer ids that this broker assigns (KIP-730).

Owns the unused ids of one block, and the request for the next block. Must not know producers. Runs on the loop thread
only.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class ProducerIds:
    """Assigns each id once."""

    def __init__(self, allocate: Callable[[], Awaitable[range]]) -> None:
        self._allocate = allocate
        # Unassigned ids of the newest block. Invariant: the allocation of the block to this broker is committed.
        self._free = iter(range(0))
        self._refill = asyncio.Lock()

    def take(self) -> int | None:
        """Return the next id, or None if a new block is needed."""
        return next(self._free, None)

    async def take_after_refill(self) -> int:
        """Return the next id, after requesting a block from the controller if needed."""
        while True:
            async with self._refill:
                producer_id = self.take()
                if producer_id is not None:
                    return producer_id
                self._free = iter(await self._allocate())
