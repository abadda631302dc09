"""Moves of logs between the log directories of this broker (AlterReplicaLogDirs, KIP-113).

Owns the moves in progress, the directories of future replicas, and the threads that fill them. The native log copies
the records and swaps the future replica for the log. Must not know leadership, clients or metadata records. Its methods
block on the disk: they are called from worker threads, never from the loop.

A move is stored as the directory of its future replica only. At a start such a move is resumed, as Kafka does, unless
the topic is deleted or the log is already in that directory. A move whose target fails is cancelled and its directory
removed; a move whose log fails waits for the next start.
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

# A full target disk is no damage: the copy is removed, which frees the space.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_PACE = "replica.alter.log.dirs.io.max.bytes.per.second"
_EXHAUSTED_S = 1.0  # backoff of a move that finds no descriptor, or no memory
_AGAIN_S = 0.1  # backoff after a truncation of the log, which ends its move


class Move:
    """A move of a log to another directory."""

    def __init__(self, partition: Partition, source: LogDirectory, target: LogDirectory, future: Path) -> None:
        self.partition = partition
        self.source = source
        self.target = target
        self.future = future
        self.state = LogMove()
        self.cancelled = False
        self.ended = threading.Event()
        # The task of a worker; None before the move is submitted to one.
        self.work: Future[None] | None = None

    @property
    def key(self) -> Key:
        """Topic and partition index."""
        return self.partition.topic, self.partition.index

    @property
    def lag(self) -> int:
        """Number of offsets that the future replica is behind the log."""
        return max(0, self.partition.log_end_offset - self.state.end_offset)

    def cancel(self) -> None:
        """Cancel the move as soon as possible."""
        self.cancelled = True
        self.state.cancel()


class LogMoves:
    """Moves logs, at most one per thread at a time. Safe to use from several threads."""

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
        """`moved` is called, on a worker's thread, with each completed move; it may raise OSError.

        `directory_failed` is called in the same way with each directory that fails.
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
        # Held while a move is requested or cancelled: requests are handled one after the other.
        self._querying = threading.Lock()
        # Guards `_moves`. Invariant: exactly the moves that have not ended, including those that wait for a thread.
        self._lock = threading.Lock()
        self._moves: dict[Key, Move] = {}

    def all(self) -> list[Move]:
        """Return the moves that have not ended."""
        with self._lock:
            return list(self._moves.values())

    def is_moving(self, topic: str, index: int) -> bool:
        """Return whether a log is being moved."""
        return (topic, index) in self._moves

    def set_pace(self, max_bytes_per_second: float) -> None:
        """Change the rate of copying, in bytes per second for all moves together."""
        if max_bytes_per_second != self._pace:
            self._pace = max_bytes_per_second
            self._mover.set_pace(max_bytes_per_second)
            self._warn_of_standstill()

    def _warn_of_standstill(self) -> None:
        if not self._pace:
            log.warning("%s=0: moves between log directories stop until it is raised", _PACE)

    def stop(self) -> None:
        """Stop all moves; the next start resumes them."""
        with self._querying:
            self._stopping.set()
            self._mover.stop()
        self._workers.shutdown(cancel_futures=True)

    def request(self, topic: str, index: int, path: str) -> None:
        """Move a log to the log directory with this path; does nothing if the log is there already, or moves there.

        A move to another directory is cancelled first. Raises OSError and StorageError; a partition without a log here
        will be created in that directory.
        """
        name = future_name(topic, index)
        if name is None:
            raise TopicNameTooLongError(f"{topic}: the name of the future replica's directory would be too long")
        target = next((directory for directory in self._directories.logs if str(directory.path) == path), None)
        if target is None:
            raise LogDirectoryNotFoundError(f"{path} is none of the log directories")
        if target.offline:
            raise DirectoryOfflineError(f"log directory {path} failed")
        with self._querying:
            self._request(topic, index, target, name)

    def _request(self, topic: str, index: int, target: LogDirectory, name: str) -> None:
        in_progress = self._moves.get((topic, index))
        if in_progress is not None and in_progress.target is not target:
            self._end(in_progress)
        if self._partitions.is_lost(topic, index):
            raise DirectoryOfflineError(f"the log directory of {topic}-{index} failed")
        located = self._partitions.locate(topic, index)
        if located is None:
            self._partitions.prefer(topic, index, target)
            raise PartitionNotHereError(f"this broker has no replica of {topic}-{index}")
        partition, source = located
        if source is not target and (topic, index) not in self._moves:
            self._begin(Move(partition, source, target, target.path / name))

    def _end(self, move: Move) -> None:
        move.cancel()
        if move.work is not None and move.work.cancel():
            self._run(move)  # it waited for a thread: only its future replica has to be removed
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
        """Resume the moves that the last run has not completed; all logs are open."""
        for (topic, index), directory, path in self._partitions.left_futures:
            located = self._partitions.locate(topic, index)
            if located is None and self._partitions.is_lost(topic, index):
                continue
            try:
                if located is None or not self._is_wanted(located, directory, path):
                    log.info("Removing %s, which is no longer needed", path)
                    discard(path)
                else:
                    with self._querying:
                        self._begin(Move(*located, directory, path))
            except (OSError, ValueError) as error:
                log.error("the move of %s-%d to %s is not resumed: %s", topic, index, directory.path, error)

    def _is_wanted(self, located: tuple[Partition, LogDirectory], directory: LogDirectory, path: Path) -> bool:
        partition, source = located
        moving = self.is_moving(partition.topic, partition.index)
        (there,) = read_topic_ids([str(path)])
        return belongs(there, partition.topic_id) and source is not directory and not moving

    def give_up_failed(self) -> None:
        """Cancel the moves whose target has failed."""
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
        """Copy the log and swap it; returns whether the log is in its target directory."""
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
            except ValueError as error:  # a file of the log does not match its name
                log.error("%s-%d cannot be moved: %s", *move.key, error)
                return False
            else:
                self._complete(move, Path(old), left)
                return True
        return False

    def _is_open(self, move: Move) -> bool:
        return self._partitions.get(*move.key) is move.partition

    def _failed(self, move: Move, error: OSError) -> bool:
        """Handle an I/O error before or after the swap; returns whether the log is in its target directory."""
        there = Path(move.partition.directory) == move.target.path
        log.error("%s-%d %s: %s", *move.key, "was moved and has failed" if there else "cannot be moved", error)
        if there:
            self._note(move)
        self._doubt(move, error)
        return there

    def _doubt(self, move: Move, error: OSError) -> None:
        """Report the directory in which an error occurred as failed, if the whole directory has failed."""
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

    def _complete(self, move: Move, old: Path, left: OSError | None) -> None:
        """Complete a move after the swap: remove the log's old directory."""
        self._note(move)
        log.info("moved %s-%d from %s to %s", *move.key, move.source.path, move.target.path)
        if left is None:
            remove(old)
        else:
            # It is outdated; the next start that finds it removes it.
            log.error("Failed to remove %s: %s", old, left)
            if not is_exhaustion(left):
                self._directory_failed(move.source.path, left)

    def _leave(self, move: Move) -> None:
        """Remove the future replica, unless the next start shall resume the move."""
        resumed = not move.cancelled and (self._stopping.is_set() or self._partitions.is_lost(*move.key))
        if not resumed:
            try:
                discard(move.future)
            except OSError as error:
                log.warning("%s cannot be removed: %s", move.future, error)
            log.info("the move of %s-%d to %s has ended", *move.key, move.target.path)
