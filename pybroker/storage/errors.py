"""What can be wrong with a log directory or a partition.

StorageError
├── DirectoryError              the directory cannot be used at all: the broker does not start
│   ├── DirectoryLockedError    another broker holds it
│   └── ForeignDirectoryError   it belongs to another node or cluster, or to no broker
├── CorruptCheckpointError      a checkpoint file is not in Kafka's form
├── DirectoryOfflineError       the directory failed while the broker ran: its partitions are not served
└── CleaningEndedError          a pass of compaction was ended: the log is cut, closed or deleted, or the broker stops
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class StorageError(Exception):
    """Something about the stored data is wrong; the text is one line that says what and where."""


class DirectoryError(StorageError):
    """A log directory cannot be used."""


class DirectoryLockedError(DirectoryError):
    """Another broker uses the directory."""

    def __init__(self, path: Path, pid: int | None) -> None:
        holder = "another broker" if pid is None else f"another broker (process {pid})"
        super().__init__(f"log directory {path} is locked by {holder}: stop it, or set log.dirs to another directory")


class ForeignDirectoryError(DirectoryError):
    """The directory belongs to somebody else."""


class CorruptCheckpointError(StorageError):
    """A checkpoint file cannot be read."""

    def __init__(self, path: Path, line: int, expected: str) -> None:
        super().__init__(f"checkpoint file {path}, line {line}: expected {expected}")


class DirectoryOfflineError(StorageError):
    """The directory of a partition failed."""


class CleaningEndedError(StorageError):
    """A pass of compaction was ended before its end; what it had finished by then stays."""
