"""The open partitions of this node: opened, closed, deleted, and checkpointed.

Owns the assignment of partitions to log directories. Its methods block on the disk:
they are called from worker threads, never from the loop. Must not know leadership, clients or metadata records.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pybroker.metadata.replica_directories import LOST_DIRECTORY
from pybroker.storage.errors import DirectoryOfflineError, StorageError
from pybroker.storage.exhaustion import is_exhaustion
from pybroker.storage.log_dirs.checkpoints import Checkpoints
from pybroker.storage.log_dirs.claims import complete_found, id_of, is_elsewhere
from pybroker.storage.log_dirs.clean_stop import CleanStop
from pybroker.storage.log_dirs.last_run import LastOffsets, LastRuns
from pybroker.storage.log_dirs.partition_directory import (
    bytes_from,
    discard,
    is_deleted,
    parse_future_name,
    parse_name,
    remove,
    set_aside,
)
from pybroker.storage.losses import Losses
from pybroker.storage.native import (
    LogConfig,
    LogOpening,
    Partition,
    RecoveryProgress,
    open_logs,
    read_topic_ids,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pybroker.storage.log_dirs.directories import Directories
    from pybroker.storage.log_dirs.log_directory import LogDirectory

log = logging.getLogger("pybroker.storage")

Key = tuple[str, int]


class Opening(NamedTuple):
    """A partition that is to be opened; `assigned` is the id of its directory in the cluster metadata."""

    key: Key
    topic_id: bytes
    config: LogConfig
    assigned: bytes | None = None


class _Hosted(NamedTuple):
    partition: Partition
    directory: LogDirectory


class Partitions:
    """The open partitions, by topic and index. Safe to use from several threads."""

    def __init__(
        self,
        directories: Directories,
        now_ms: Callable[[], int],
        on_failure: Callable[[Path, OSError], object] | None = None,
    ) -> None:
        """`on_failure` is called with each directory that fails, on the thread that notices; it calls `fail` later."""
        self._directories = directories
        self._now_ms = now_ms
        self._on_failure = on_failure
        self._lock = threading.Lock()
        # Invariant: exactly the partitions whose logs are open and whose directory has not failed.
        self._hosted: dict[Key, _Hosted] = {}
        # The directories of each partition that is not open yet. There are several if one of them was missing for a
        # while. Invariant: no key is in both.
        self._found: dict[Key, list[LogDirectory]] = {}
        # As `_found`, for partitions whose opening lacked a descriptor or memory; it is retried.
        # Invariant: no key is in two of the three.
        self._put_off: dict[Key, list[LogDirectory]] = {}
        # The directories of new partitions that are being opened.
        self._begun: dict[Key, LogDirectory] = {}
        # The number of all those per directory; None if it must be counted. New partitions increment it.
        self._counts: Counter[LogDirectory] | None = None
        # Partitions of the metadata that are offline, with their directory if it is known: the directory failed, or
        # the log cannot be opened. No key is hosted.
        self._lost: dict[Key, LogDirectory | None] = {}
        # Invariant: true until all partitions that the last run may have had are opened.
        self._claiming = True
        self._last_runs = LastRuns()
        # Directories of future replicas that the last run has left.
        self._futures: list[tuple[Key, LogDirectory, Path]] = []
        # The requested directories of partitions that are not here yet.
        self._preferred: dict[Key, LogDirectory] = {}
        self._stop = CleanStop()
        self._losses = Losses()
        # Partitions that no directory has at the start, although a checkpoint may list them.
        self._missing: set[Key] = set()
        # Bytes read by the recoveries in each directory.
        self._progress = {directory.path: RecoveryProgress() for directory in directories.logs}
        self._checkpoints = Checkpoints()

    def scan(self) -> None:
        """Read the content of the directories and the files of the last run; removes logs whose deletion had begun.

        Raises OSError if there are no descriptors for that.
        """
        for directory in self._directories.online:
            try:
                self._scan(directory)
            except OSError as error:
                if is_exhaustion(error):
                    raise
                self._fail(directory, error)

    def _scan(self, directory: LogDirectory) -> None:
        self._stop.begin(directory.path)
        self._last_runs.read(directory)
        with os.scandir(directory.path) as entries:
            found = list(entries)
        for entry in found:
            if is_deleted(entry.name):
                remove(Path(entry.path))
                continue
            future = parse_future_name(entry.name)
            if future is not None:
                self._futures.append((future, directory, Path(entry.path)))
                continue
            key = parse_name(entry.name)
            if key is not None and entry.is_dir():
                self._found.setdefault(key, []).append(directory)

    @property
    def to_recover(self) -> Mapping[Path, int]:
        """Number of partitions that are not open yet, by directory, for directories without a clean shutdown."""
        paths = (directory.path for directories in self._found.values() for directory in directories)
        return Counter(path for path in paths if not self._last_runs.clean(path))

    def recovered_bytes(self, directory: Path) -> int:
        """Return the number of bytes that the recoveries in a directory have read so far."""
        return self._progress[directory].bytes

    def bytes_to_recover(self, topic: str, index: int) -> int:
        """Return the number of bytes that the recovery of an unopened partition will read; 0 without a recovery."""
        key = (topic, index)
        unclean = (path for path in self._paths_of(key) if not self._last_runs.clean(path))
        points = ((path, self._last_runs.listed_offsets(key, path).recovery_point) for path in unclean)
        return sum(bytes_from(path / f"{topic}-{index}", point) for path, point in points)

    def _paths_of(self, key: Key) -> list[Path]:
        return [directory.path for directory in (self._found.get(key) or self._put_off.get(key) or [])]

    def directory_of(self, topic: str, index: int) -> Path | None:
        """Return the directory of a partition, open or not; None if it has none yet."""
        hosted = self._hosted.get((topic, index))
        if hosted is not None:
            return hosted.directory.path
        return next(iter(self._paths_of((topic, index))), None)

    def by_directory(self) -> dict[LogDirectory, list[Partition]]:
        """Return every log directory, including failed ones, with its open partitions."""
        lying: dict[LogDirectory, list[Partition]] = {directory: [] for directory in self._directories.logs}
        with self._lock:
            for hosted in self._hosted.values():
                lying[hosted.directory].append(hosted.partition)
        return lying

    def is_lost(self, topic: str, index: int) -> bool:
        """Return whether the partition has a log here but is offline."""
        return (topic, index) in self._lost

    def lost_count(self) -> int:
        """Return the number of offline partitions. Safe to call from any thread."""
        return len(self._lost)

    def directory_id(self, topic: str, index: int) -> bytes | None:
        """Return the id of the partition's directory, including a directory that has failed.

        Returns LOST_DIRECTORY for an offline partition whose directory works, None for an unknown partition.
        """
        key = (topic, index)
        hosted = self._hosted.get(key)
        if hosted is not None:
            return id_of(hosted.directory)
        directory = self._lost.get(key)
        if directory is None:
            return None
        return id_of(directory) if directory.offline else LOST_DIRECTORY

    def get(self, topic: str, index: int) -> Partition | None:
        """Return the open partition, None if it is not open here."""
        hosted = self._hosted.get((topic, index))
        return None if hosted is None else hosted.partition

    def all(self) -> list[Partition]:
        """Return every open partition."""
        with self._lock:
            return [hosted.partition for hosted in self._hosted.values()]

    def open_all(self, openings: Iterable[Opening]) -> dict[Key, Partition | Exception]:
        """Open partitions, and create new ones. Returns each partition, or the error that prevents its opening.

        The errors are OSError, ValueError and StorageError. A partition that could not be opened, or whose directory
        failed, is lost until the broker restarts, unless the error `is_exhaustion`: then it can be opened later.
        Files are read and created without the interpreter's lock.
        """
        outcomes: dict[Key, Partition | Exception] = {}
        waiting: dict[Key, Opening] = {}
        with self._lock:
            for opening in openings:
                hosted = self._hosted.get(opening.key)
                if hosted is None:
                    waiting[opening.key] = opening
                else:
                    outcomes[opening.key] = hosted.partition
            found = {key: self._found.pop(key, []) or self._put_off.pop(key, []) for key in waiting}
        try:
            prepared = self._prepare(waiting, found, outcomes)
            logs = open_logs([opening for opening, _ in prepared.values()], now_ms=self._now_ms())
            self._losses.gather(self._progress)
            for (key, (_, directory)), opened in zip(prepared.items(), logs, strict=True):
                if isinstance(opened, Exception):
                    outcomes[key] = self._lose(key, opened, directory)
                    continue
                with self._lock:
                    self._hosted[key] = _Hosted(opened, directory)
                outcomes[key] = opened
        finally:
            with self._lock:
                begun = {key: self._begun.pop(key) for key in waiting if key in self._begun}
                if any(found.values()) or not self._hosted.keys() >= begun.keys():
                    self._counts = None
                for key in waiting:
                    if is_exhaustion(outcomes.get(key)):
                        self._put_off[key] = found[key] or ([begun[key]] if key in begun else [])
        return outcomes

    def _lose(self, key: Key, error: Exception, directory: LogDirectory | None = None) -> Exception:
        """Record that a partition is offline, and whether its directory failed.

        Does nothing if the opening only lacked a descriptor or memory: the log is intact.
        """
        if is_exhaustion(error):
            return error
        self._lost.setdefault(key, directory)
        if isinstance(error, OSError) and directory is not None and directory.has_failed(error):
            self._fail(directory, error)
        return error

    def _prepare(
        self,
        waiting: Mapping[Key, Opening],
        found: Mapping[Key, list[LogDirectory]],
        outcomes: dict[Key, Partition | Exception],
    ) -> dict[Key, tuple[LogOpening, LogDirectory]]:
        """Return the known state of each log and its existing or new directory; puts the errors into `outcomes`."""
        paths = [f"{directory.path}/{key[0]}-{key[1]}" for key in waiting for directory in found[key]]
        ids = dict(zip(paths, read_topic_ids(paths), strict=True))
        own: dict[Key, LogDirectory] = {}
        new: list[Key] = []
        for key, opening in waiting.items():
            try:
                if key in self._lost:
                    raise DirectoryOfflineError(f"the log directory of {key[0]}-{key[1]} failed")
                directory = self._claim(key, opening, found[key], ids)
            except (OSError, ValueError, StorageError) as error:
                outcomes[key] = self._lose(key, error)
                continue
            if directory is None:
                new.append(key)
            else:
                own[key] = directory
        try:
            own.update(self._place(new))
        except StorageError as error:
            outcomes.update((key, self._lose(key, error)) for key in new)
        prepared = {}
        for key, directory in own.items():
            try:
                claimed = ids.get(f"{directory.path}/{key[0]}-{key[1]}") == waiting[key].topic_id
                described = self._describe(key, waiting[key], directory, new=key in self._begun, claimed=claimed)
                prepared[key] = described, directory
            except (OSError, ValueError) as error:
                outcomes[key] = self._lose(key, error, directory)
        return prepared

    def _claim(
        self,
        key: Key,
        opening: Opening,
        found: list[LogDirectory],
        ids: Mapping[str, bytes | Exception | None],
    ) -> LogDirectory | None:
        """Return the directory of a partition's log, None for a new one; raises the error that prevents the opening."""
        own = complete_found(f"{key[0]}-{key[1]}", opening.topic_id, found, ids)
        if own is None:
            if self._claiming and len(self._directories.online) < len(self._directories.logs):
                # It may be in the missing directory: an empty log in its place would lose its records.
                raise DirectoryOfflineError(f"{key[0]}-{key[1]} may be in a log directory that is offline")
            if self._claiming and not found:
                self._missing.add(key)
            return None
        if own.offline:
            raise DirectoryOfflineError(f"log directory {own.path} failed")
        if is_elsewhere(self._directories, own, opening.assigned):
            # It was moved, and the log that was left here is outdated.
            raise DirectoryOfflineError(f"{key[0]}-{key[1]} is in a log directory that is offline")
        return own

    def _place(self, keys: Sequence[Key]) -> dict[Key, LogDirectory]:
        """Return directories for new partitions: the requested one, else the emptiest; raises DirectoryError."""
        placed: dict[Key, LogDirectory] = {}
        if not keys:
            return placed
        with self._lock:
            counts = self._counts = self._count() if self._counts is None else self._counts
            for key in keys:
                preferred = self._preferred.pop(key, None)
                if preferred is None or preferred.offline:
                    preferred = self._directories.place(counts.__getitem__)
                counts[preferred] += 1
                # Concurrent placements count it.
                placed[key] = self._begun[key] = preferred
        return placed

    def _count(self) -> Counter[LogDirectory]:
        """Return the number of existing and new partitions per directory. Called with the lock."""
        counts = Counter(hosted.directory for hosted in self._hosted.values())
        counts.update(self._begun.values())
        counts.update(directory for found in self._found.values() for directory in found)
        counts.update(directory for found in self._put_off.values() for directory in found)
        return counts

    def _describe(self, key: Key, opening: Opening, directory: LogDirectory, *, new: bool, claimed: bool) -> LogOpening:
        offsets = self._last_runs.offsets_where_missing(key) if key in self._missing else LastOffsets()
        if not new:
            offsets = self._last_runs.offsets_of(key, directory.path)
        return LogOpening(
            directory=str(directory.path),
            topic=key[0],
            index=key[1],
            topic_id=opening.topic_id,
            claimed=claimed,
            config=opening.config,
            clean_shutdown=new or self._last_runs.clean(directory.path),
            recovery_point=offsets.recovery_point,
            log_start_offset=offsets.log_start,
            high_watermark=offsets.high_watermark,
            progress=self._progress[directory.path],
        )

    @property
    def left_futures(self) -> list[tuple[Key, LogDirectory, Path]]:
        """The future replicas that the last run has left: partition, log directory and path of each."""
        return self._futures

    def locate(self, topic: str, index: int) -> tuple[Partition, LogDirectory] | None:
        """Return the open partition and its log directory, None if it is not open here."""
        return self._hosted.get((topic, index))

    def prefer(self, topic: str, index: int, directory: LogDirectory) -> None:
        """Choose the directory in which a partition will be created here; a stop discards this choice."""
        with self._lock:
            self._preferred[topic, index] = directory

    def moved(self, partition: Partition, directory: LogDirectory) -> bool:
        """Record the new directory of a moved partition; returns False if the partition is not open."""
        key = (partition.topic, partition.index)
        with self._lock:
            hosted = self._hosted.get(key)
            if hosted is None or hosted.partition is not partition:
                return False
            self._hosted[key] = _Hosted(partition, directory)
            self._counts = None
        # The new directory first: a log start that is in no checkpoint would be lost in a crash.
        self._in(directory, partial(self._write_checkpoints, directory))
        self._in(hosted.directory, partial(self._write_checkpoints, hosted.directory))
        return True

    def delete(self, topic: str, index: int) -> None:
        """Delete the partition's log; raises OSError."""
        with self._lock:
            hosted = self._hosted.pop((topic, index), None)
            self._counts = None
            self._lost.pop((topic, index), None)
            put_off = self._put_off.pop((topic, index), [])
        for directory in put_off:
            if (directory.path / f"{topic}-{index}").exists():
                discard(directory.path / f"{topic}-{index}")
        if hosted is not None:
            try:
                hosted.partition.delete()
            except OSError as error:
                if not is_exhaustion(error):
                    raise
                # Renaming takes no descriptor: it frees the name for a new topic.
                discard(hosted.directory.path / f"{topic}-{index}")

    def set_aside_strays(self) -> None:
        """Log a summary of the losses, and rename the logs that no topic claims, as Kafka does."""
        self._losses.summarize()
        with self._lock:
            self._missing.clear()
            strays, self._found = self._found, {}
            self._counts = None
            self._claiming = False
        for (topic, index), directories in strays.items():
            for directory in directories:
                set_aside(directory.path / f"{topic}-{index}")

    def fail(self, path: str) -> list[Partition]:
        """Take the directory offline and return its partitions."""
        with self._lock:
            lost = []
            self._counts = None
            for directory in self._directories.logs:
                if str(directory.path) == path or path.startswith(f"{directory.path}/"):
                    directory.offline = True
            for key, hosted in list(self._hosted.items()):
                if hosted.directory.offline:
                    del self._hosted[key]
                    self._lost[key] = hosted.directory
                    lost.append(hosted.partition)
        return lost

    def _fail(self, directory: LogDirectory, error: OSError) -> None:
        if self._on_failure is not None and not directory.offline:
            self._on_failure(directory.path, error)
        directory.offline = True

    def flush(self, topic: str, index: int) -> None:
        """Flush one log to its disk; if the disk fails, its directory goes offline."""
        hosted = self._hosted.get((topic, index))
        if hosted is not None:
            self._in(hosted.directory, hosted.partition.flush)

    def flush_due(self) -> None:
        """Flush every log whose last flush is `flush.ms` ago; if a disk fails, its directory goes offline."""
        with self._lock:
            everything = list(self._hosted.values())
        now_ms = self._now_ms()
        for partition, directory in everything:
            self._in(directory, partial(partition.flush_due, now_ms))

    def write_checkpoints(self) -> bool:
        """Write changed recovery points, high watermarks and log start offsets to the checkpoint files.

        A missing directory, or one where a write fails, goes offline. Returns False for lack of a descriptor: retry.
        """
        written = True
        for directory in self._directories.online:
            self._in(directory, directory.check)
            written &= self._in(directory, partial(self._write_checkpoints, directory))
        return written

    def write_log_starts(self) -> bool:
        """Write changed log start offsets to the checkpoint files; errors as in `write_checkpoints`."""
        written = True
        for directory in self._directories.online:
            opened = partial(self._partitions_in, directory)
            written &= self._in(directory, partial(self._checkpoints.write_log_starts, directory.path, opened))
        return written

    def role_failed(self, topic: str, index: int, error: OSError) -> None:
        """Take the directory of an open partition offline, because its log failed during a change of role."""
        if (hosted := self._hosted.get((topic, index))) is not None:
            self._fail(hosted.directory, error)

    def _in(self, directory: LogDirectory, work: Callable[[], object]) -> bool:
        """Run `work`; if it fails, the directory goes offline. Returns False if it only lacked a descriptor."""
        if directory.offline:
            return True
        try:
            work()
        except OSError as error:
            if is_exhaustion(error):
                log.warning("log directory %s: a checkpoint is delayed: %s", directory.path, error)
                return False
            self._fail(directory, error)
        return True

    def _write_checkpoints(self, directory: LogDirectory) -> None:
        self._checkpoints.write(directory.path, partial(self._partitions_in, directory))

    def _partitions_in(self, directory: LogDirectory) -> list[Partition]:
        with self._lock:
            return [hosted.partition for hosted in self._hosted.values() if hosted.directory is directory]

    def close(self, threads: int, broker_epoch: int, *, clean: bool) -> None:
        """Close every log, as described in `CleanStop.close`."""
        self._stop.close(self.by_directory(), threads, self._write_checkpoints, broker_epoch, clean=clean)
