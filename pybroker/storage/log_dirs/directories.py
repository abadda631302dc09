"""All log directories of the node together: their consistency, formatting, and the placement of partitions.

Owns the checks between directories and the placement rule. Must not open logs.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pybroker.storage.errors import DirectoryError, DirectoryFailedError, ForeignDirectoryError, NotFormattedError
from pybroker.storage.log_dirs.log_directory import NO_BROKER_EPOCH, LogDirectory
from pybroker.storage.log_dirs.meta_properties import MetaProperties, random_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

log = logging.getLogger("pybroker.storage")


class Directories:
    """The locked log directories, and the metadata directory if it is a separate one."""

    def __init__(self, logs: tuple[LogDirectory, ...], metadata: LogDirectory) -> None:
        self.logs = logs
        self.metadata = metadata

    @classmethod
    def acquire(cls, log_paths: Sequence[Path], metadata_path: Path, node_id: int) -> Directories:
        """Lock every directory and check that all belong to this node; raises DirectoryError, and changes nothing then.

        A log directory with an I/O error is offline from the start, as in Kafka. The metadata directory and the last
        log directory are required.
        """
        held: dict[Path, LogDirectory] = {}
        try:
            for path in (*log_paths, metadata_path):
                if path not in held:
                    held[path] = _acquire(path, needed=path == metadata_path)
            if all(held[path].offline for path in log_paths):
                raise DirectoryError("none of the log directories can be used")
            _check_identity(held.values(), node_id)
        except DirectoryError:
            for directory in held.values():
                directory.release()
            raise
        return cls(tuple(held[path] for path in log_paths), held[metadata_path])

    @property
    def all(self) -> tuple[LogDirectory, ...]:
        """Every directory once."""
        return self.logs if self.metadata in self.logs else (*self.logs, self.metadata)

    @property
    def online(self) -> tuple[LogDirectory, ...]:
        """The log directories that have not failed."""
        return tuple(directory for directory in self.logs if not directory.offline)

    @property
    def last_broker_epoch(self) -> int:
        """The broker epoch of the last run, if it ended cleanly in every log directory; else -1 (KIP-966)."""
        epochs = {directory.last_broker_epoch() for directory in self.online}
        return epochs.pop() if len(epochs) == 1 else NO_BROKER_EPOCH

    def require_identity(self) -> None:
        """Check that the node was formatted, as a node of a cluster does not format itself; raises NotFormattedError.

        A new log directory gets the identity of the other directories.
        """
        if all(directory.meta is None for directory in self.all):
            paths = ", ".join(str(directory.path) for directory in self.all)
            raise NotFormattedError(
                f"No readable meta.properties files found. (have you run `pybroker format` to format {paths}?)"
            )
        if self.metadata.meta is None:
            raise NotFormattedError(
                f"No `meta.properties` found in {self.metadata.path} (have you run `pybroker format` to format the "
                "directory?)"
            )

    def format(self, node_id: int) -> str:
        """Format the directories without an identity, and return the cluster id; raises DirectoryError (ADR 0004).

        The cluster id is that of the formatted directories, else a random one.
        """
        known = [directory.meta.cluster_id for directory in self.all if directory.meta is not None]
        cluster_id = known[0] if known else random_id()
        for directory in self.all:
            if directory.meta is None and not directory.offline:
                self._format(directory, MetaProperties(cluster_id, node_id, random_id()))
        return cluster_id

    def _format(self, directory: LogDirectory, meta: MetaProperties) -> None:
        try:
            directory.format(meta)
        except DirectoryFailedError as error:
            if directory is self.metadata or len(self.online) < 2:
                raise
            log.error("%s; the directory is offline", error)
            directory.offline = True

    def place(self, partitions_in: Callable[[LogDirectory], int]) -> LogDirectory:
        """Return the directory for a new partition: the one with the fewest, as Kafka does; raises DirectoryError."""
        online = self.online
        if not online:
            raise DirectoryError("all log directories are offline")
        if len(online) == 1:
            # No need to count: each of a thousand new partitions would count all previous ones.
            return online[0]
        return min(online, key=partitions_in)

    def release(self) -> None:
        """Release all locks."""
        for directory in self.all:
            directory.release()


def _acquire(path: Path, *, needed: bool) -> LogDirectory:
    try:
        return LogDirectory.acquire(path)
    except DirectoryFailedError as error:
        if needed:
            raise
        log.error("%s; the directory is offline, and its partitions are not served", error)
        return LogDirectory.failed(path)


def _check_identity(directories: Iterable[LogDirectory], node_id: int) -> None:
    first: LogDirectory | None = None
    for directory in directories:
        if directory.meta is None:
            continue
        if directory.meta.node_id != node_id:
            raise ForeignDirectoryError(
                f"log directory {directory.path} belongs to node {directory.meta.node_id}, but node.id is {node_id}"
            )
        if first is None or first.meta is None:
            first = directory
        elif directory.meta.cluster_id != first.meta.cluster_id:
            raise ForeignDirectoryError(
                f"log directory {directory.path} belongs to cluster {directory.meta.cluster_id}, "
                f"but {first.path} belongs to cluster {first.meta.cluster_id}"
            )
