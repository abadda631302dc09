"""Errors of log directories and partitions.

StorageError
├── DirectoryError              the directory cannot be used: the broker does not start
│   ├── DirectoryFailedError    an I/O error: only this directory is offline, if another one is usable
│   ├── DirectoryLockedError    another broker has locked the directory
│   ├── ForeignDirectoryError   the directory belongs to another node or cluster, or to no broker
│   └── NotFormattedError       the directory has no identity, and the node may not format it
├── CorruptCheckpointError      a checkpoint file is not in Kafka's format
├── DirectoryOfflineError       the directory failed while the broker ran: its partitions are offline
├── LogDirectoryNotFoundError   there is no log directory of that name
├── PartitionNotHereError       the partition has no log on this broker
├── TopicNameTooLongError       the topic's name is too long for the suffix of a directory's name
├── MoveEndedError              a move to another directory ended: cancelled, or the log is truncated, closed or deleted
├── CleaningEndedError          compaction of a log ended: the log is truncated, closed or deleted, or the broker stops
└── NotAppendedError            a coordinator's batches were rejected
    ├── BatchTooLargeError      a batch is larger than the topic's max.message.bytes
    ├── CoordinatorFencedError  a marker is of an earlier epoch of a transaction coordinator
    ├── InvalidProducerEpochError  a producer has a newer epoch, or a marker is of an earlier transaction
    ├── InvalidTxnStateError    a batch belongs to no open or verified transaction
    ├── NotEnoughReplicasError  fewer replicas are in sync than min.insync.replicas
    └── NotLeaderError          this broker does not lead the partition
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class StorageError(Exception):
    """The stored data is wrong; the text is one line that describes the error and its location."""


class DirectoryError(StorageError):
    """A log directory cannot be used."""


class DirectoryFailedError(DirectoryError):
    """An I/O error prevents the use of the directory: its disk failed, or permissions are missing."""


class DirectoryLockedError(DirectoryError):
    """Another broker uses the directory."""

    def __init__(self, path: Path, pid: int | None) -> None:
        holder = "another broker" if pid is None else f"another broker (process {pid})"
        super().__init__(f"log directory {path} is locked by {holder}: stop it, or set log.dirs to another directory")


class ForeignDirectoryError(DirectoryError):
    """The directory belongs to another node."""


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
    """The partition has no log on this broker."""


class TopicNameTooLongError(StorageError):
    """A directory name that contains the topic's name would be longer than file systems allow."""


class MoveEndedError(StorageError):
    """The move of a log was cancelled; the log stays in its directory."""


class CleaningEndedError(StorageError):
    """A compaction pass was cancelled; the segments that it had finished stay compacted."""


class NotAppendedError(StorageError):
    """Batches were rejected; nothing was appended."""


class BatchTooLargeError(NotAppendedError):
    """A batch is larger than the topic's max.message.bytes."""


class CoordinatorFencedError(NotAppendedError):
    """A marker has an earlier epoch of the transaction coordinator (TRANSACTION_COORDINATOR_FENCED)."""


class InvalidProducerEpochError(NotAppendedError):
    """The log has a newer epoch of the producer (INVALID_PRODUCER_EPOCH)."""


class InvalidTxnStateError(NotAppendedError):
    """A transactional batch belongs to no open transaction here, and was not verified (INVALID_TXN_STATE)."""


class NotEnoughReplicasError(NotAppendedError):
    """Fewer replicas are in sync than min.insync.replicas."""


class NotLeaderError(NotAppendedError):
    """This broker does not lead the partition."""
