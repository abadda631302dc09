"""Moves of logs between the log directories of this broker (AlterReplicaLogDirs, KIP-113).

Owns which log is on its way where, the directories of future replicas, and the threads that fill them. The copying
itself and the moment in which a future replica takes the log's place are the native log's. Must not know leadership,
clients or metadata records. Its methods block on the disk: they are called from worker threads, never from the loop.

A future replica's directory is what remembers a move: one that a start finds is filled further, as Kafka does it,
unless its topic is gone or the log lies there already. A move that fails on its target is given up and its directory
removed; one whose log fails waits for the next start.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from pybroker.storage.errors import (
    DirectoryOfflineError,
    LogDirectoryNotFoundError,
    MoveEndedError,
    PartitionNotHereError,
    TopicNameTooLongError,
)
from pybroker.storage.exhaustion import is_exhaustion
from pybroker.storage.log_dirs.partition_directory import belongs, discard, future_name, remove
from pybroker.storage.native import LogMove, LogMover, prepare_move, read_topic_ids

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.storage.log_dirs.directories import Directories
    from pybroker.storage.log_dirs.log_directory import LogDirectory
    from pybroker.storage.native import Partition
    from pybroker.storage.partitions import Partitions

log = logging.getLogger("pybroker.storage")

Key = tuple[str, int]

# A target without room is no damage: what was copied goes, and there is room again.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_PACE = "replica.alter.log.dirs.io.max.bytes.per.second"
_EXHAUSTED_S = 1.0  # a move that finds no descriptor, or no memory, is tried again so much later
_AGAIN_S = 0.1  # a log that is cut ends its move; it is tried again so much later


class Move:
    """A log on its way to another directory."""

    def __init__(self, partition: Partition, source: LogDirectory, target: LogDirectory, future: Path) -> None:
        self.partition = partition
        self.source = source
        self.target = target
        self.future = future
        self.state = LogMove()
        self.cancelled = False
        self.ended = threading.Event()
        # What a worker makes of it; None before the move is handed to one.
        self.work: Future[None] | None = None

    @property
    def key(self) -> Key:
        """Topic and index."""
        return self.partition.topic, self.partition.index

    @property
    def lag(self) -> int:
        """How many offsets the future replica is behind the log."""
        return max(0, self.partition.log_end_offset - self.state.end_offset)

    def cancel(self) -> None:
        """End it as soon as can be."""
        self.cancelled = True
        self.state.cancel()


class LogMoves:
    """Moves logs, as many at a time as there are threads. Safe to use from several threads."""

    def __init__(
        self,
        partitions: Partitions,
        directories: Directories,
        *,
        threads: int,
        max_bytes_per_second: float,
        directory_failed: Callable[[Path, OSError], None],
        moved: Callable[[Move], None],
    ) -> None:
        """`moved` is called, on a worker's thread, with each move that is done; it may raise OSError.

        `directory_failed` is called with a directory that does not do what it should, in the same way.
        """
        self._partitions = partitions
        self._directories = directories
        self._directory_failed = directory_failed
        self._moved = moved
        self._pace = max_bytes_per_second
        self._mover = LogMover(max_bytes_per_second=max_bytes_per_second)
        self._warn_of_standstill()
        self._workers = ThreadPoolExecutor(threads, "pybroker-mover")
        self._stopping = threading.Event()
        # Held while a move is asked for or ended: requests are dealt with one after the other.
        self._asking = threading.Lock()
        # Guards `_moves`. Invariant: exactly the moves that have not ended, those that wait for a thread among them.
        self._lock = threading.Lock()
        self._moves: dict[Key, Move] = {}

    def all(self) -> list[Move]:
        """Return the moves that have not ended."""
        with self._lock:
            return list(self._moves.values())

    def is_moving(self, topic: str, index: int) -> bool:
        """Return whether a log is on its way."""
        return (topic, index) in self._moves

    def set_pace(self, max_bytes_per_second: float) -> None:
        """Change how much all moves together copy in a second."""
        if max_bytes_per_second != self._pace:
            self._pace = max_bytes_per_second
            self._mover.set_pace(max_bytes_per_second)
            self._warn_of_standstill()

    def _warn_of_standstill(self) -> None:
        if not self._pace:
            log.warning("%s=0: moves between log directories stop until it is raised", _PACE)

    def stop(self) -> None:
        """End all moves; the next start goes on with them."""
        with self._asking:
            self._stopping.set()
            self._mover.stop()
        self._workers.shutdown(cancel_futures=True)

    def request(self, topic: str, index: int, path: str) -> None:
        """Have a log moved to the log directory with this path; where it lies there already, or moves there, nothing
        is done.

        A move to another directory is ended first. Raises OSError and StorageError; where the partition does not lie
        here, it will be put into that directory when it comes.
        """
        name = future_name(topic, index)
        if name is None:
            raise TopicNameTooLongError(f"{topic}: a directory name with the topic's in it would be too long")
        target = next((directory for directory in self._directories.logs if str(directory.path) == path), None)
        if target is None:
            raise LogDirectoryNotFoundError(f"{path} is none of the log directories")
        if target.offline:
            raise DirectoryOfflineError(f"log directory {path} failed")
        with self._asking:
            self._request(topic, index, target, name)

    def _request(self, topic: str, index: int, target: LogDirectory, name: str) -> None:
        under_way = self._moves.get((topic, index))
        if under_way is not None and under_way.target is not target:
            self._end(under_way)
        if self._partitions.is_lost(topic, index):
            raise DirectoryOfflineError(f"the log directory of {topic}-{index} failed")
        located = self._partitions.locate(topic, index)
        if located is None:
            self._partitions.prefer(topic, index, target)
            raise PartitionNotHereError(f"{topic}-{index} does not lie here")
        partition, source = located
        if source is not target and (topic, index) not in self._moves:
            self._begin(Move(partition, source, target, target.path / name))

    def _end(self, move: Move) -> None:
        move.cancel()
        if move.work is not None and move.work.cancel():
            self._run(move)  # no thread was free for it yet, and there is nothing to do but to take it away
        move.ended.wait()

    def _begin(self, move: Move) -> None:
        try:
            prepare_move(move.partition, str(move.future))
        except OSError as error:
            self._doubt(move, error)
            raise
        with self._lock:
            self._moves[move.key] = move
        log.info("moving %s-%d from %s to %s", *move.key, move.source.path, move.target.path)
        if not self._stopping.is_set():
            move.work = self._workers.submit(self._run, move)

    def resume(self) -> None:
        """Go on with the moves that the last run has left; all logs are open."""
        for (topic, index), directory, path in self._partitions.left_futures:
            located = self._partitions.locate(topic, index)
            if located is None and self._partitions.is_lost(topic, index):
                continue
            try:
                if located is None or not self._is_wanted(located, directory, path):
                    log.info("Removing %s, which is no longer needed", path)
                    discard(path)
                else:
                    with self._asking:
                        self._begin(Move(*located, directory, path))
            except (OSError, ValueError) as error:
                log.error("the move of %s-%d to %s is not resumed: %s", topic, index, directory.path, error)

    def _is_wanted(self, located: tuple[Partition, LogDirectory], directory: LogDirectory, path: Path) -> bool:
        partition, source = located
        moving = self.is_moving(partition.topic, partition.index)
        (there,) = read_topic_ids([str(path)])
        return belongs(there, partition.topic_id) and source is not directory and not moving

    def give_up_failed(self) -> None:
        """End the moves whose target has failed."""
        for move in self.all():
            if move.target.offline:
                move.cancel()

    def _run(self, move: Move) -> None:
        try:
            if not self._move(move):
                self._leave(move)
        finally:
            with self._lock:
                self._moves.pop(move.key, None)
            move.ended.set()

    def _move(self, move: Move) -> bool:
        """Move the log; whether it lies in its new place."""
        while not move.cancelled and not self._stopping.is_set() and self._is_open(move):
            try:
                old, left = self._mover.move_log(
                    move.partition, move.state, future=str(move.future), deleted_id=os.urandom(16).hex()
                )
            except MoveEndedError:
                self._stopping.wait(_AGAIN_S)
            except OSError as error:
                if is_exhaustion(error) and Path(move.partition.directory) == move.source.path:
                    log.warning("The move of %s-%d is delayed: %s", *move.key, error)
                    self._stopping.wait(_EXHAUSTED_S)
                    continue
                return self._failed(move, error)
            except ValueError as error:  # a file of the log is not what its name says
                log.error("%s-%d cannot be moved: %s", *move.key, error)
                return False
            else:
                self._settle(move, Path(old), left)
                return True
        return False

    def _is_open(self, move: Move) -> bool:
        return self._partitions.get(*move.key) is move.partition

    def _failed(self, move: Move, error: OSError) -> bool:
        """A file failed, before the log took its new place or after it."""
        there = Path(move.partition.directory) == move.target.path
        log.error("%s-%d %s: %s", *move.key, "was moved and has failed" if there else "cannot be moved", error)
        if there:
            self._note(move)
        self._doubt(move, error)
        return there

    def _doubt(self, move: Move, error: OSError) -> None:
        """See whether the directory that an error came up in has failed as a whole."""
        if error.errno in _FULL:
            return
        in_source = error.filename is not None and Path(error.filename).is_relative_to(move.source.path)
        directory = move.source if in_source else move.target
        if directory.has_failed(error):
            self._directory_failed(directory.path, error)

    def _note(self, move: Move) -> None:
        if self._partitions.moved(move.partition, move.target):
            try:
                self._moved(move)
            except OSError as error:
                log.error("%s-%d was moved, but its checkpoints could not be updated: %s", *move.key, error)

    def _settle(self, move: Move, old: Path, left: OSError | None) -> None:
        """The log lies in its new place: what was there before goes."""
        self._note(move)
        log.info("moved %s-%d from %s to %s", *move.key, move.source.path, move.target.path)
        if left is None:
            remove(old)
        else:
            # It is out of date; the next start that finds it removes it.
            log.error("Failed to remove %s: %s", old, left)
            if not is_exhaustion(left):
                self._directory_failed(move.source.path, left)

    def _leave(self, move: Move) -> None:
        """Take the future replica away, unless the next start shall go on with it."""
        resumed = not move.cancelled and (self._stopping.is_set() or self._partitions.is_lost(*move.key))
        if not resumed:
            try:
                discard(move.future)
            except OSError as error:
                log.warning("%s cannot be removed: %s", move.future, error)
            log.info("the move of %s-%d to %s has ended", *move.key, move.target.path)
