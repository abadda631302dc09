"""The open partitions of this node: opened, closed, deleted, and checkpointed.

Owns which directory a partition lies in and the checkpoint files of all directories. Its methods block on the disk:
they are called from worker threads, never from the loop. Must not know leadership, clients or metadata records.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from typing import TYPE_CHECKING, NamedTuple

from pybroker.storage.checkpoint import (
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    read_checkpoint,
    write_checkpoint,
)
from pybroker.storage.errors import CorruptCheckpointError, DirectoryOfflineError
from pybroker.storage.meta_properties import id_bytes
from pybroker.storage.native import LogConfig, Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from pybroker.storage.directories import Directories
    from pybroker.storage.log_directory import LogDirectory

log = logging.getLogger("pybroker.storage")

# `-` and digits end the name of a partition's directory; the topic itself may hold dashes and digits.
_DIRECTORY = re.compile(r"^(?P<topic>.+)-(?P<index>\d+)$")
_DELETED = re.compile(r"^.+-\d+\.[0-9a-f]{32}-delete$")
_METADATA_TOPIC = "__cluster_metadata"

Key = tuple[str, int]


class _Hosted(NamedTuple):
    partition: Partition
    directory: LogDirectory


class Partitions:
    """What is open here, by topic and index. Safe to use from several threads."""

    def __init__(self, directories: Directories, now_ms: Callable[[], int]) -> None:
        self._directories = directories
        self._now_ms = now_ms
        self._lock = threading.Lock()
        # Invariant: exactly the partitions whose logs are open and whose directory has not failed.
        self._hosted: dict[Key, _Hosted] = {}
        # Where a partition lies that is not open yet. Invariant: no key is in both.
        self._found: dict[Key, LogDirectory] = {}
        # What the last run knew, used once by the opening of each partition.
        self._recovery_points: dict[Key, int] = {}
        self._log_starts: dict[Key, int] = {}
        self._high_watermarks: dict[Key, int] = {}
        self._clean: dict[Path, bool] = {}
        # Invariant: what the checkpoint files hold, as far as this run has written them.
        self._written: dict[Path, dict[Key, int]] = {}
        # Held while checkpoint files are written: a file is replaced by one thread at a time, by newer offsets only.
        self._writing = threading.Lock()

    def scan(self) -> None:
        """Look at what the directories hold and what the last run wrote down; removes what was being deleted."""
        for directory in self._directories.logs:
            self._clean[directory.path] = directory.take_clean_shutdown()
            self._recovery_points.update(_checkpoint(directory.path / RECOVERY_POINTS))
            self._log_starts.update(_checkpoint(directory.path / LOG_STARTS))
            self._high_watermarks.update(_checkpoint(directory.path / HIGH_WATERMARKS))
            for entry in directory.path.iterdir():
                if _DELETED.match(entry.name):
                    _remove(entry)
                    continue
                match = _DIRECTORY.match(entry.name)
                if match and match["topic"] != _METADATA_TOPIC and entry.is_dir():
                    self._found[match["topic"], int(match["index"])] = directory

    @property
    def to_recover(self) -> int:
        """How many partitions, not opened yet, lie where the last run did not stop cleanly."""
        return sum(1 for directory in self._found.values() if not self._clean[directory.path])

    def get(self, topic: str, index: int) -> Partition | None:
        """Return the open partition, None when it is not open here."""
        hosted = self._hosted.get((topic, index))
        return None if hosted is None else hosted.partition

    def all(self) -> list[Partition]:
        """Return every open partition."""
        with self._lock:
            return [hosted.partition for hosted in self._hosted.values()]

    def by_directory(self) -> dict[LogDirectory, list[Partition]]:
        """Return every log directory, failed ones too, with what is open in it."""
        lying: dict[LogDirectory, list[Partition]] = {directory: [] for directory in self._directories.logs}
        with self._lock:
            for hosted in self._hosted.values():
                lying[hosted.directory].append(hosted.partition)
        return lying

    def open(self, topic: str, index: int, topic_id: bytes, config: LogConfig) -> Partition:
        """Open the partition, creating it where it is new; raises OSError, DirectoryError and the log's own errors."""
        key = (topic, index)
        with self._lock:
            hosted = self._hosted.get(key)
            if hosted is not None:
                return hosted.partition
            directory = self._found.pop(key, None)
        if directory is not None and not _belongs(directory.path / f"{topic}-{index}", topic_id):
            _set_aside(directory.path / f"{topic}-{index}")
            directory = None
        clean = True if directory is None else self._clean[directory.path]
        if directory is None:
            directory = self._directories.place(self._count_in)
            recovery_point = log_start = high_watermark = 0
        else:
            recovery_point = self._recovery_points.pop(key, 0)
            log_start = self._log_starts.pop(key, 0)
            high_watermark = self._high_watermarks.pop(key, 0)
        if directory.offline:
            raise DirectoryOfflineError(f"log directory {directory.path} failed")
        partition = Partition.open(
            directory=str(directory.path),
            topic=topic,
            index=index,
            topic_id=topic_id,
            config=config,
            clean_shutdown=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start,
            high_watermark=high_watermark,
            now_ms=self._now_ms(),
        )
        with self._lock:
            self._hosted[key] = _Hosted(partition, directory)
        return partition

    def delete(self, topic: str, index: int) -> None:
        """Delete the partition's log; raises OSError."""
        with self._lock:
            hosted = self._hosted.pop((topic, index), None)
        if hosted is not None:
            hosted.partition.delete()

    def set_aside_strays(self) -> None:
        """Rename what lies here and no topic claims, as Kafka does, so that a topic of the same name starts empty."""
        with self._lock:
            strays, self._found = self._found, {}
        for (topic, index), directory in strays.items():
            _set_aside(directory.path / f"{topic}-{index}")

    def fail(self, path: str) -> list[Key]:
        """Take the directory out of use and return the partitions that went with it."""
        with self._lock:
            lost = []
            for directory in self._directories.logs:
                if str(directory.path) == path or path.startswith(f"{directory.path}/"):
                    directory.offline = True
            for key, hosted in list(self._hosted.items()):
                if hosted.directory.offline:
                    del self._hosted[key]
                    lost.append(key)
        return lost

    def flush(self) -> None:
        """Flush every log to its disk; raises OSError."""
        for partition in self.all():
            partition.flush()

    def write_checkpoints(self) -> None:
        """Write down recovery points, high watermarks and log starts where they have changed; raises OSError."""
        with self._writing:
            for directory, here in self._by_directory():
                self._write(directory.path / RECOVERY_POINTS, _offsets(here, lambda p: p.recovery_point))
                self._write(directory.path / HIGH_WATERMARKS, _offsets(here, lambda p: p.high_watermark))
                self._write(directory.path / LOG_STARTS, _log_starts(here))

    def write_log_starts(self) -> None:
        """Write down the log starts where they have changed; raises OSError."""
        with self._writing:
            for directory, here in self._by_directory():
                self._write(directory.path / LOG_STARTS, _log_starts(here))

    def _by_directory(self) -> Iterable[tuple[LogDirectory, dict[Key, Partition]]]:
        with self._lock:
            hosted = dict(self._hosted)
        for directory in self._directories.online:
            yield directory, {key: value.partition for key, value in hosted.items() if value.directory is directory}

    def _write(self, path: Path, offsets: dict[Key, int]) -> None:
        if self._written.get(path) != offsets:
            write_checkpoint(path, offsets)
            self._written[path] = offsets

    def close(self, run_all: Callable[[Iterable[Callable[[], None]]], None], broker_epoch: int, *, clean: bool) -> None:
        """Flush and close every log; if all was `clean`, write checkpoints and clean-shutdown files; raises OSError.

        `run_all` runs the closings, in parallel if it likes. The clean-shutdown files come last: they vouch for all
        that is written before them.
        """
        run_all([partition.close for partition in self.all()])
        if not clean:
            return
        self.write_checkpoints()
        for directory in self._directories.online:
            directory.write_clean_shutdown(broker_epoch)

    def _count_in(self, directory: LogDirectory) -> int:
        with self._lock:
            opened = sum(1 for hosted in self._hosted.values() if hosted.directory is directory)
            return opened + sum(1 for found in self._found.values() if found is directory)


def _offsets(partitions: Mapping[Key, Partition], offset: Callable[[Partition], int]) -> dict[Key, int]:
    return {key: offset(partition) for key, partition in partitions.items()}


def _log_starts(partitions: Mapping[Key, Partition]) -> dict[Key, int]:
    return {key: offset for key, offset in _offsets(partitions, lambda p: p.log_start_offset).items() if offset > 0}


def _checkpoint(path: Path) -> dict[Key, int]:
    # A checkpoint only saves work: without it a log is recovered from its beginning.
    try:
        return read_checkpoint(path)
    except CorruptCheckpointError as error:
        log.warning("%s; it is ignored", error)
        return {}


def _belongs(path: Path, topic_id: bytes) -> bool:
    """Tell whether the directory's `partition.metadata` names this topic id; without the file it is anybody's."""
    try:
        text = (path / "partition.metadata").read_text(encoding="utf-8")
    except FileNotFoundError:
        return True
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "topic_id":
            try:
                return id_bytes(value.strip()) == topic_id
            except ValueError:
                return False
    return True


def _remove(path: Path) -> None:
    # A partition's directory holds files only. What cannot be removed now is tried again at the next start.
    try:
        for entry in path.iterdir():
            entry.unlink()
        path.rmdir()
    except OSError as error:
        log.warning("%s cannot be removed: %s", path, error)


def _set_aside(path: Path) -> None:
    stray = path.with_name(f"{path.name}.{os.urandom(16).hex()}-stray")
    log.warning("%s belongs to no topic of this cluster; it is renamed to %s", path, stray.name)
    path.rename(stray)
