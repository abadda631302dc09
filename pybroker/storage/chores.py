"""Work on disks that is done again and again, as checkpoints are and looks of retention.

Owns the pauses, and that a failure ends none of it. Must not know what is done.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

log = logging.getLogger("pybroker.storage")


async def repeat(interval_ms: int, workers: Executor, work: Callable[[], None], *, first_ms: int | None = None) -> None:
    """Do blocking work again and again, first after `first_ms`; a failure is logged and tried again."""
    loop = asyncio.get_running_loop()
    pause_ms = interval_ms if first_ms is None else first_ms
    while True:
        await asyncio.sleep(pause_ms / 1000)
        pause_ms = interval_ms
        try:
            await loop.run_in_executor(workers, work)
        except OSError as error:
            log.error("%s failed: %s", work.__name__, error)
