"""The shutdown of the network: requests in progress are completed, then connections are closed.

Owns the timeouts of both. Must not know the other parts of a shutdown.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pybroker.net.native import DataPlane
    from pybroker.net.pipeline import Pipeline

log = logging.getLogger("pybroker.net")

FINISH_MS = 3000
"""Timeout of requests in progress at a shutdown, and then of clients to read their responses."""


async def finish_requests(pipeline: Pipeline) -> None:
    """Wait for the completion of requests in progress, at most `FINISH_MS`."""
    try:
        await asyncio.wait_for(pipeline.finish(), FINISH_MS / 1000)
    except TimeoutError:
        log.warning("Requests were still being processed after %d ms", FINISH_MS)


async def close_connections(data_plane: DataPlane) -> None:
    """Close every connection after its responses are sent, or after `FINISH_MS`."""
    await asyncio.to_thread(data_plane.shut_down, grace_ms=FINISH_MS)
    syncs, appends = data_plane.flush_counts
    if syncs:
        log.info("Shared fsync calls: %d calls flushed %d appends", syncs, appends)
