"""What can be wrong with a log directory or a partition.

StorageError
├── DirectoryError              the directory cannot be used at all: the broker does not start
│   ├── DirectoryFailedError    the system refuses: offline alone, where another directory is left
│   ├── DirectoryLockedError    another broker holds it
│   ├── ForeignDirectoryError   it belongs to another node or cluster, or to no broker
│   └── NotFormattedError       it has no identity, and the node may not give it one
├── CorruptCheckpointError      a checkpoint file is not in Kafka's form
├── DirectoryOfflineError       the directory failed while the broker ran: its partitions are not served
├── LogDirectoryNotFoundError   there is no log directory of that name
├── PartitionNotHereError       the partition has no log on this broker
├── TopicNameTooLongError       the topic's name leaves no room for what is to stand behind it in a directory's name
├── MoveEndedError              a move to another directory was ended: cancelled, or the log is cut, closed or deleted
├── CleaningEndedError          a pass of compaction was ended: the log is cut, closed or deleted, or the broker stops
└── NotAppendedError            a coordinator's batches were refused
    ├── BatchTooLargeError      a batch is larger than the topic takes
    ├── CoordinatorFencedError  a marker is of a transaction coordinator that has a successor
    ├── InvalidProducerEpochError  a producer has a newer epoch, or a marker is of an earlier transaction
    ├── InvalidTxnStateError    a batch is part of no transaction that is open, or was verified
    ├── NotEnoughReplicasError  fewer replicas are in sync than min.insync.replicas
    └── NotLeaderError          this broker does not lead the partition
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class StorageError(Exception):
    """Something about the stored data is wrong; the text is one line that says what and where."""


class DirectoryError(StorageError):
    """A log directory cannot be used."""


class DirectoryFailedError(DirectoryError):
    """The system does not let the directory be used: its disk failed, or nobody may read it."""


class DirectoryLockedError(DirectoryError):
    """Another broker uses the directory."""

    def __init__(self, path: Path, pid: int | None) -> None:
        holder = "another broker" if pid is None else f"another broker (process {pid})"
        super().__init__(f"log directory {path} is locked by {holder}: stop it, or set log.dirs to another directory")


class ForeignDirectoryError(DirectoryError):
    """The directory belongs to somebody else."""


class NotFormattedError(DirectoryError):
    """The directory has to be formatted before the node starts."""


class CorruptCheckpointError(StorageError):
    """A checkpoint file cannot be read."""

    def __init__(self, path: Path, line: int, expected: str) -> None:
        super().__init__(f"checkpoint file {path}, line {line}: expected {expected}")


class DirectoryOfflineError(StorageError):
    """The directory of a partition failed."""


class LogDirectoryNotFoundError(StorageError):
    """No log directory has that path."""


class PartitionNotHereError(StorageError):
    """The partition has no log here."""


class TopicNameTooLongError(StorageError):
    """A directory's name with the topic's in it would be longer than file systems allow."""


class MoveEndedError(StorageError):
    """A move of a log was ended before its end; the log is where it was."""


class CleaningEndedError(StorageError):
    """A pass of compaction was ended before its end; what it had finished by then stays."""


class NotAppendedError(StorageError):
    """Batches were refused; nothing was written."""


class BatchTooLargeError(NotAppendedError):
    """A batch is larger than the topic takes."""


class CoordinatorFencedError(NotAppendedError):
    """A marker of a transaction coordinator that another one has succeeded (TRANSACTION_COORDINATOR_FENCED)."""


class InvalidProducerEpochError(NotAppendedError):
    """The log knows a newer epoch of the producer (INVALID_PRODUCER_EPOCH)."""


class InvalidTxnStateError(NotAppendedError):
    """A batch of a transaction that is not open here, and that no verification allows (INVALID_TXN_STATE)."""


class NotEnoughReplicasError(NotAppendedError):
    """Fewer replicas are in sync than min.insync.replicas."""


class NotLeaderError(NotAppendedError):
    """This broker does not lead the partition."""
