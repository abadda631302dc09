from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pybroker.net import closing
from pybroker.net.closing import close_connections, finish_requests


class Pipeline:
    """Requests in work that end when `finished` is set."""

    def __init__(self) -> None:
        self.finished = asyncio.Event()

    async def finish(self) -> None:
        await self.finished.wait()


class DataPlane:
    """Notes how it is shut down."""

    def __init__(self, flush_counts: tuple[int, int]) -> None:
        self.flush_counts = flush_counts
        self.calls: list[dict[str, Any]] = []

    def shut_down(self, **arguments: Any) -> None:
        self.calls.append(arguments)


async def test_requests_that_have_begun_are_waited_for() -> None:
    pipeline = Pipeline()
    finishing = asyncio.ensure_future(finish_requests(pipeline))  # type: ignore[arg-type]
    done, _ = await asyncio.wait([finishing], timeout=0.05)
    assert not done
    pipeline.finished.set()
    await asyncio.wait_for(finishing, 60)


async def test_requests_that_take_too_long_are_reported_and_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(closing, "FINISH_MS", 20)
    await finish_requests(Pipeline())  # type: ignore[arg-type]
    assert "Requests were still being processed after 20 ms" in caplog.text


@pytest.mark.parametrize(
    ("counts", "lines"), [((0, 0), []), ((2, 7), ["Shared fsync calls: 2 calls flushed 7 appends"])]
)
async def test_connections_are_closed_with_a_time_to_read_answers(
    counts: tuple[int, int], lines: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "pybroker.net")
    data_plane = DataPlane(counts)
    await close_connections(data_plane)  # type: ignore[arg-type]
    assert data_plane.calls == [{"grace_ms": closing.FINISH_MS}]
    assert [record.getMessage() for record in caplog.records] == lines
