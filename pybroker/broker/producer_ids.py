"""The block of producer ids that this broker gives out (KIP-730).

Owns the unused rest of one block, and the asking for the next. Must not know what a producer does with its id. Runs on
the loop thread only.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class ProducerIds:
    """Gives out ids, each once."""

    def __init__(self, allocate: Callable[[], Awaitable[range]]) -> None:
        self._allocate = allocate
        # Invariant: ids of the newest block that nobody has; the block itself is committed as given to this broker.
        self._free = iter(range(0))
        self._refill = asyncio.Lock()

    def take(self) -> int | None:
        """Return the next id, None when a new block is needed first."""
        return next(self._free, None)

    async def take_after_refill(self) -> int:
        """Return the next id, asking the controller for a block unless another request just did."""
        while True:
            async with self._refill:
                producer_id = self.take()
                if producer_id is not None:
                    return producer_id
                self._free = iter(await self._allocate())
