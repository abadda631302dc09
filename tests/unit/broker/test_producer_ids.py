from __future__ import annotations

import asyncio

from pybroker.broker.producer_ids import ProducerIds


async def test_ids_are_given_once_and_blocks_are_asked_for_once() -> None:
    blocks = iter([range(1000, 1002), range(5000, 5003)])
    requested = 0

    async def allocate() -> range:
        nonlocal requested
        requested += 1
        await asyncio.wait_for(started.wait(), 60)
        return next(blocks)

    started = asyncio.Event()
    asyncio.get_running_loop().call_soon(started.set)
    ids = ProducerIds(allocate)
    assert ids.take() is None
    taken = await asyncio.gather(*(ids.take_after_refill() for _ in range(5)))
    assert sorted(taken) == [1000, 1001, 5000, 5001, 5002]
    assert requested == 2
    assert ids.take() is None
