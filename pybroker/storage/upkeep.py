"""What works on a broker's logs by itself while it runs: retention, compaction, moves, checkpoints, open files.

Owns which of these there are, and how they begin and end together. Must not know how any of them works, nor who leads a
partition.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from pybroker.storage.chores import begin_chores
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


class Upkeep:
    """Keeps the logs of a broker as its settings want them. Used from the event loop."""

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
        """`config_of` returns the broker's settings in force, `settings_of` a topic's, None for one that goes.

        At most `log_files` files of segments stay open. `directory_failed` is called, on any thread, with a log
        directory that does not do what it should; `moved`, on the loop's thread, with a topic of which a log was moved.
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
        # The cleaner while it is at work. The movers know this list, and not this object: until a collection found the
        # two, they would keep files open.
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
        # Flushes of logs that began a new segment; empty before the logs are closed.
        self._flushes: set[asyncio.Future[None]] = set()

    @property
    def cleaner_counts(self) -> CleanerCounts | None:
        """What the cleaner has done; None while it does not run."""
        return next((cleaner.counts for cleaner in list(self._cleaners)), None)

    async def resume_moves(self) -> None:
        """Go on with the moves that an earlier run has begun."""
        await self._loop.run_in_executor(self._workers, self.moves.resume)

    async def begin(self) -> None:
        """Begin everything that works by the clock."""
        config = self._config_of()
        self._tasks = begin_chores(
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
        """Take the broker's changed settings."""
        self.moves.set_pace(config.replica_alter_log_dirs_io_max_bytes_per_second)

    def flush_rolled(self, topic: str, index: int) -> None:
        """Flush a log that began a new segment: its recovery point follows, and a crash has one segment to scan."""
        flushing = self._loop.run_in_executor(self._workers, self._partitions.flush, topic, index)
        self._flushes.add(flushing)
        flushing.add_done_callback(self._flushes.discard)

    async def flushed(self) -> None:
        """Wait for the flushes that `flush_rolled` has begun; raises what one of them raised."""
        await asyncio.gather(*self._flushes)

    async def end(self) -> None:
        """End everything but flushes; a pass or a move that is under way ends without a result."""
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
    """Runs blocking work on a worker, some time from now."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, workers: Executor) -> None:
        self._loop = loop
        self._clock = clock
        self._workers = workers
        self._stopped = False

    def __call__(self, delay_ms: int, work: Callable[[], None], /) -> None:
        """Take the work, from any thread."""
        self._loop.call_soon_threadsafe(self._clock.call_later, delay_ms / 1000, partial(self._submit, work))

    def stop(self) -> None:
        """Begin nothing more."""
        self._stopped = True

    def _submit(self, work: Callable[[], None]) -> None:
        if not self._stopped:
            self._workers.submit(work)


def _moved(cleaners: Iterable[Cleaner], notify: Callable[[str], object], move: Move) -> None:
    """Have the cleaner follow a log that was moved, on the mover's thread."""
    for cleaner in cleaners:
        cleaner.follow_move(move.key, move.source, move.target)
    notify(move.partition.topic)
