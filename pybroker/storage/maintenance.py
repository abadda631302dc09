"""Background tasks for a broker's logs: retention, compaction, moves, checkpoints, open files.

Owns the list of tasks, and their start and stop. Must not know how any of them works, nor the partitions' leaders.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from pybroker.storage.background_tasks import begin_background_tasks
from pybroker.storage.compaction.cleaner import Cleaner
from pybroker.storage.moves import LogMoves
from pybroker.storage.open_files import OpenFiles
from pybroker.storage.retention import Retention

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Executor
    from pathlib import Path

    from pybroker.config.broker import BrokerConfig
    from pybroker.config.topic import TopicConfig
    from pybroker.machine.clock import Clock
    from pybroker.storage.compaction.cleaner import CleanerCounts
    from pybroker.storage.log_dirs.directories import Directories
    from pybroker.storage.moves import Move
    from pybroker.storage.partitions import Partitions


class Maintenance:
    """Runs the background tasks for the logs of a broker. Used from the event loop."""

    def __init__(
        self,
        partitions: Partitions,
        directories: Directories,
        workers: Executor,
        clock: Clock,
        *,
        config_of: Callable[[], BrokerConfig],
        settings_of: Callable[[str], TopicConfig | None],
        log_files: int,
        directory_failed: Callable[[Path, OSError], None],
        moved: Callable[[str], None],
    ) -> None:
        """`config_of` returns the broker's configuration, `settings_of` a topic's, None if it is being deleted.

        At most `log_files` files of segments stay open. `directory_failed` is called, on any thread, with a failed log
        directory; `moved` is called, on the loop's thread, with the topic of a log that was moved.
        """
        config = config_of()
        self._partitions = partitions
        self._workers = workers
        self._clock = clock
        loop = self._loop = asyncio.get_running_loop()
        self._config_of = config_of
        self._settings_of = settings_of
        self._directory_failed = directory_failed
        self._later = _Later(self._loop, clock, workers)
        # The cleaner while it runs. The movers reference this list, not this object: otherwise a reference cycle would
        # keep files open until the next garbage collection.
        self._cleaners: list[Cleaner] = []
        self.moves = LogMoves(
            partitions,
            directories,
            threads=config.num_replica_alter_log_dirs_threads or len(directories.logs),
            max_bytes_per_second=config.replica_alter_log_dirs_io_max_bytes_per_second,
            directory_failed=directory_failed,
            moved=partial(_moved, self._cleaners, lambda topic: loop.call_soon_threadsafe(moved, topic)),
        )
        self.retention = Retention(partitions, settings_of, self._later, clock.wall_ms)
        self.open_files = OpenFiles(partitions, log_files, workers)
        self._tasks: list[asyncio.Task[None]] = []
        # Flushes of logs that rolled a segment; empty before the logs are closed.
        self._flushes: set[asyncio.Future[None]] = set()

    @property
    def cleaner_counts(self) -> CleanerCounts | None:
        """The cleaner's statistics; None while it does not run."""
        return next((cleaner.counts for cleaner in list(self._cleaners)), None)

    async def resume_moves(self) -> None:
        """Resume the moves of the previous run."""
        await self._loop.run_in_executor(self._workers, self.moves.resume)

    async def begin(self) -> None:
        """Start all periodic tasks."""
        config = self._config_of()
        self._tasks = begin_background_tasks(
            config, self._partitions, self.retention, self.open_files, self._workers, self._clock
        )
        if config.log_cleaner_enable:
            cleaner = Cleaner(
                self._partitions,
                self._settings_of,
                self._config_of,
                self._later,
                self._clock.wall_ms,
                self._directory_failed,
                self.moves.is_moving,
                self._clock.sleep,
            )
            self._cleaners.append(cleaner)
            await self._loop.run_in_executor(self._workers, cleaner.move_back_checkpoints)
            self._tasks.append(asyncio.ensure_future(cleaner.run()))

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply the broker's changed configuration."""
        self.moves.set_pace(config.replica_alter_log_dirs_io_max_bytes_per_second)

    def flush_rolled(self, topic: str, index: int) -> None:
        """Flush a log that rolled a segment: its recovery point advances, and a crash leaves one segment to recover."""
        flushing = self._loop.run_in_executor(self._workers, self._partitions.flush, topic, index)
        self._flushes.add(flushing)
        flushing.add_done_callback(self._flushes.discard)

    async def flushed(self) -> None:
        """Wait for the flushes that `flush_rolled` has begun; raises the first error of a flush."""
        await asyncio.gather(*self._flushes)

    async def end(self) -> None:
        """Stop all tasks except flushes; a pass or move in progress ends without a result."""
        self._later.stop()
        for task in self._tasks:
            task.cancel()
        self.retention.stop()
        try:
            for cleaner in self._cleaners:
                await asyncio.to_thread(cleaner.stop)
        finally:
            self._cleaners.clear()
            await asyncio.to_thread(self.moves.stop)


class _Later:
    """Runs blocking work on a worker after a delay."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, workers: Executor) -> None:
        self._loop = loop
        self._clock = clock
        self._workers = workers
        self._stopped = False

    def __call__(self, delay_ms: int, work: Callable[[], None], /) -> None:
        """Schedule the work, from any thread."""
        self._loop.call_soon_threadsafe(self._clock.call_later, delay_ms / 1000, partial(self._submit, work))

    def stop(self) -> None:
        """Start no more work."""
        self._stopped = True

    def _submit(self, work: Callable[[], None]) -> None:
        if not self._stopped:
            self._workers.submit(work)


def _moved(cleaners: Iterable[Cleaner], notify: Callable[[str], object], move: Move) -> None:
    """Report a moved log to the cleaner, on the mover's thread."""
    for cleaner in cleaners:
        cleaner.follow_move(move.key, move.source, move.target)
    notify(move.partition.topic)
