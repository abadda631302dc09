"""Log directories in Admin's arguments and results. Plain values, no behaviour."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from pybroker.client.administration.topics import TopicPartition
from pybroker.protocol.errors import ErrorCode


class ReplicaInfo(Struct, frozen=True):
    """A replica in a log directory."""

    size: int
    """Size of its segments in bytes."""
    offset_lag: int
    """Lag in offsets: behind the high watermark for a current replica, behind the current replica for a future one."""
    is_future: bool
    """Whether it is a future replica, which is to replace the log in another directory."""


class LogDirDescription(Struct, frozen=True):
    """A log directory. It has no replicas where it is offline."""

    error: ErrorCode
    replicas: Mapping[TopicPartition, ReplicaInfo] = field(default_factory=dict)
    total_bytes: int = -1
    """Size of its volume in bytes, -1 where the broker does not return it."""
    usable_bytes: int = -1
    """Free space of its volume in bytes, -1 where the broker does not return it."""


class Replica(Struct, frozen=True):
    """A partition's replica on one broker."""

    partition: TopicPartition
    broker: int


class BatchMark(Struct, frozen=True):
    """The header fields that identify a batch. The checksum covers its records and most of its header."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    """-1 in message formats before 2."""
    checksum: int


class ReplicaBatches(Struct, frozen=True):
    """The batches of a replica from offset `first` up to `end`, in order."""

    first: int
    end: int
    batches: tuple[BatchMark, ...]
