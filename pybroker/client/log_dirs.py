"""What Admin takes and gives about log directories. Plain values, no behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pybroker.client.topics import TopicPartition
from pybroker.protocol.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class ReplicaInfo:
    """A replica in a log directory."""

    size: int
    """Bytes of its segments."""
    offset_lag: int
    """How far it is behind: the high watermark of one that serves, the log of a future one."""
    is_future: bool
    """Whether it is filled to take the place of the log in another directory."""


@dataclass(frozen=True, slots=True)
class LogDirDescription:
    """A log directory; without replicas where it cannot be looked at."""

    error: ErrorCode
    replicas: Mapping[TopicPartition, ReplicaInfo] = field(default_factory=dict)
    total_bytes: int = -1
    """Size of its volume, -1 where the broker does not say."""
    usable_bytes: int = -1
    """Room on its volume, -1 where the broker does not say."""


@dataclass(frozen=True, slots=True)
class Replica:
    """A partition's replica on one broker."""

    partition: TopicPartition
    broker: int


@dataclass(frozen=True, slots=True)
class BatchMark:
    """What distinguishes a batch of a log from others; the checksum is of its records and most of its header."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    """-1 in the formats before 2."""
    checksum: int


@dataclass(frozen=True, slots=True)
class ReplicaBatches:
    """The batches that a replica has from offset `first` up to `end`, in order."""

    first: int
    end: int
    batches: tuple[BatchMark, ...]
