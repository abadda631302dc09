"""What Admin takes and gives about log directories. Plain values, no behaviour."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from pybroker.client.administration.topics import TopicPartition
from pybroker.protocol.errors import ErrorCode


class ReplicaInfo(Struct, frozen=True):
    """A replica in a log directory."""

    size: int
    """Bytes of its segments."""
    offset_lag: int
    """How far it is behind: the high watermark of one that serves, the log of a future one."""
    is_future: bool
    """Whether it is filled to take the place of the log in another directory."""


class LogDirDescription(Struct, frozen=True):
    """A log directory; without replicas where it cannot be checked."""

    error: ErrorCode
    replicas: Mapping[TopicPartition, ReplicaInfo] = field(default_factory=dict)
    total_bytes: int = -1
    """Size of its volume, -1 where the broker does not say."""
    usable_bytes: int = -1
    """Room on its volume, -1 where the broker does not say."""


class Replica(Struct, frozen=True):
    """A partition's replica on one broker."""

    partition: TopicPartition
    broker: int


class BatchMark(Struct, frozen=True):
    """What distinguishes a batch of a log from others; the checksum is of its records and most of its header."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    """-1 in the formats before 2."""
    checksum: int


class ReplicaBatches(Struct, frozen=True):
    """The batches that a replica has from offset `first` up to `end`, in order."""

    first: int
    end: int
    batches: tuple[BatchMark, ...]
