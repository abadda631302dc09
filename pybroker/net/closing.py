"""How the network comes to its end: requests that have begun are answered, then connections are closed.

Owns how long a stop waits for either. Must not know what ends before or after.
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
"""How long requests in work may take at a stop before their connections are closed, and answers to be read after."""


async def finish_requests(pipeline: Pipeline) -> None:
    """Wait for the answers to requests that have begun, but no longer than `FINISH_MS`."""
    try:
        await asyncio.wait_for(pipeline.finish(), FINISH_MS / 1000)
    except TimeoutError:
        log.warning("Requests were still being processed after %d ms", FINISH_MS)


async def close_connections(data_plane: DataPlane) -> None:
    """Close every connection, those whose answers are not read within `FINISH_MS` without them."""
    await asyncio.to_thread(data_plane.shut_down, grace_ms=FINISH_MS)
    syncs, appends = data_plane.flush_counts
    if syncs:
        log.info("shared syncs: %d covered %d appends", syncs, appends)
