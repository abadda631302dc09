"""Periodic work on disks, such as checkpoints and retention checks.

Owns the list of periodic tasks, their intervals, and that they continue after a failure. Must not know how each works.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from pybroker.config.key import LONG_MAX
from pybroker.machine.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from pybroker.config.broker import BrokerConfig
    from pybroker.machine.clock import Clock
    from pybroker.storage.open_files import OpenFiles
    from pybroker.storage.partitions import Partitions
    from pybroker.storage.retention import Retention

log = logging.getLogger("pybroker.storage")

_CHECK_FILES_MS = 10_000


def begin_background_tasks(
    config: BrokerConfig,
    partitions: Partitions,
    retention: Retention,
    open_files: OpenFiles,
    workers: Executor,
    clock: Clock = SYSTEM_CLOCK,
) -> list[asyncio.Task[None]]:
    """Start the periodic tasks for a broker's logs; they run until they are cancelled."""
    checkpoint_ms = min(
        config.log_flush_offset_checkpoint_interval_ms,
        config.log_flush_start_offset_checkpoint_interval_ms,
        config.replica_high_watermark_checkpoint_interval_ms,
    )
    tasks = [
        repeat(checkpoint_ms, workers, partitions.write_checkpoints, clock=clock),
        repeat(
            config.log_retention_check_interval_ms,
            workers,
            retention.delete_old_segments,
            first_ms=config.log_initial_task_delay_ms,
            clock=clock,
        ),
        repeat(config.producer_id_expiration_check_interval_ms, workers, retention.forget_producers, clock=clock),
        repeat(_CHECK_FILES_MS, workers, open_files.close_idle),
    ]
    if config.log_flush_scheduler_interval_ms < LONG_MAX:
        tasks.append(repeat(config.log_flush_scheduler_interval_ms, workers, partitions.flush_due, clock=clock))
    return [asyncio.ensure_future(task) for task in tasks]


async def repeat(
    interval_ms: int,
    workers: Executor,
    work: Callable[[], object],
    *,
    first_ms: int | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> None:
    """Run blocking work periodically, first after `first_ms`; a failure is logged and retried at the next interval."""
    loop = asyncio.get_running_loop()
    pause_ms = interval_ms if first_ms is None else first_ms
    while True:
        await clock.sleep(pause_ms / 1000)
        pause_ms = interval_ms
        try:
            await loop.run_in_executor(workers, work)
        except OSError as error:
            log.error("%s failed: %s", work.__name__, error)
