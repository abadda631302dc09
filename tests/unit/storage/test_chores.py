from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from pybroker.storage.chores import ended, repeat


async def fail(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    ("error", "words", "has_place"),
    [
        (OSError(5, "Input/output error"), "the chores did not end cleanly: [Errno 5] Input/output error", False),
        (RuntimeError("a fault"), "the chores did not end cleanly", True),
    ],
)
async def test_an_end_that_fails_is_told(
    error: Exception, words: str, has_place: bool, caplog: pytest.LogCaptureFixture
) -> None:
    assert not await ended(fail(error), "the chores")
    (told,) = caplog.records
    assert (told.getMessage(), told.exc_info is not None) == (words, has_place)


async def test_an_end_without_a_failure_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    end = asyncio.get_running_loop().create_future()
    end.set_result(None)
    assert await ended(end, "the chores")
    assert caplog.records == []


async def test_work_that_fails_is_done_again(caplog: pytest.LogCaptureFixture) -> None:
    loop, times, enough = asyncio.get_running_loop(), 0, asyncio.Event()

    def work() -> None:
        nonlocal times
        times += 1
        if times == 3:
            loop.call_soon_threadsafe(enough.set)
        raise OSError(28, "No space left on device")

    with ThreadPoolExecutor(1) as workers:
        chore = asyncio.ensure_future(repeat(1, workers, work))
        await asyncio.wait_for(enough.wait(), 20)
        chore.cancel()
        await asyncio.gather(chore, return_exceptions=True)
    assert "work failed: [Errno 28] No space left on device" in caplog.text
