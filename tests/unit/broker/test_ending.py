from __future__ import annotations

import asyncio

import pytest

from pybroker.broker.ending import ended


async def fail(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    ("error", "words", "has_place"),
    [
        (OSError(5, "Input/output error"), "the chores did not end cleanly: [Errno 5] Input/output error", False),
        (RuntimeError("a fault"), "the chores did not end cleanly", True),
    ],
)
async def test_an_end_that_fails_is_logged(
    error: Exception, words: str, has_place: bool, caplog: pytest.LogCaptureFixture
) -> None:
    assert not await ended(fail(error), "the chores")
    (logged,) = caplog.records
    assert (logged.getMessage(), logged.exc_info is not None) == (words, has_place)


async def test_an_end_without_a_failure_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    end = asyncio.get_running_loop().create_future()
    end.set_result(None)
    assert await ended(end, "the chores")
    assert caplog.records == []
