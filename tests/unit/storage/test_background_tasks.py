from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from pybroker.storage.background_tasks import repeat


async def test_work_that_fails_is_done_again(caplog: pytest.LogCaptureFixture) -> None:
    loop, times, enough = asyncio.get_running_loop(), 0, asyncio.Event()

    def work() -> None:
        nonlocal times
        times += 1
        if times == 3:
            loop.call_soon_threadsafe(enough.set)
        raise OSError(28, "No space left on device")

    with ThreadPoolExecutor(1) as workers:
        task = asyncio.ensure_future(repeat(1, workers, work))
        await asyncio.wait_for(enough.wait(), 60)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert "work failed: [Errno 28] No space left on device" in caplog.text
