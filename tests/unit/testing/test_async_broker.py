from __future__ import annotations

import asyncio

from pybroker.testing import AsyncBroker
from tests.support.wire import Wire


async def test_an_async_broker_leaves_the_loop_free_while_it_starts_and_stops() -> None:
    loop, turns = asyncio.get_running_loop(), 0

    def count() -> None:
        nonlocal turns
        turns += 1
        loop.call_soon(count)

    count()
    async with AsyncBroker() as broker:
        for act in (broker.restart, broker.reset, lambda: broker.advance(1)):
            before = turns
            await act()
            assert turns > before
        async with broker.stopped():
            pass
        async with broker.unreachable():
            pass
        with broker.recording():
            fault = broker.fail("Metadata", "REQUEST_TIMED_OUT")
            await asyncio.to_thread(request_metadata, broker.bootstrap_servers)
            await broker.wait(fault)
            (seen,) = await broker.wait_for("Metadata")
            assert seen.client_id == "wire"


def request_metadata(address: str) -> None:
    with Wire(address) as wire:
        wire.call("Metadata", 9, topics=None)


async def test_the_async_fixture_runs(async_broker: AsyncBroker) -> None:
    with async_broker.recording() as requests:
        await asyncio.to_thread(request_metadata, async_broker.bootstrap_servers)
    assert [request.api for request in requests] == ["Metadata"]
