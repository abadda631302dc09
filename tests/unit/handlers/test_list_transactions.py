from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from pybroker.handlers.list_transactions import list_transactions
from pybroker.machine.slices import Slices
from pybroker.protocol.messages.list_transactions import ListTransactionsRequest


class Coordinator:
    """Counts the copies of its transactional ids that are held at once."""

    def __init__(self) -> None:
        self.listing = asyncio.Lock()
        self.held = self.most = self.requested = 0

    async def submit_all(self, _event: Any) -> Any:
        self.held += 1
        self.requested += 1
        self.most = max(self.most, self.held)
        turn = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(turn.set_result, None)
        await turn
        return self._shards()

    def _shards(self) -> Any:
        for _ in range(3):
            yield [], 0
        self.held -= 1


async def test_however_many_ask_all_ids_are_copied_once_at_a_time() -> None:
    coordinator = Coordinator()
    context: Any = SimpleNamespace(services=SimpleNamespace(transactions=coordinator, slices=Slices()), version=2)
    await asyncio.gather(*(list_transactions(ListTransactionsRequest(), context) for _ in range(20)))
    assert (coordinator.requested, coordinator.held, coordinator.most) == (20, 0, 1)
