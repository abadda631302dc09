"""CoordinatorKind: the parameters that make the runtime's shards coordinators of groups, for example.

Owns the list of these parameters. Must not know any kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from pybroker.coordinator.runtime.log import RecordCodec
from pybroker.coordinator.runtime.machine import ShardMachine

Record = TypeVar("Record")
KindMachine = TypeVar("KindMachine", bound=ShardMachine[Any])


class ShardObserver(Protocol):
    """Work of a kind that follows from committed records, in addition to replies."""

    def unfinished(self, machine: Any) -> Sequence[Any]:
        """Return the unfinished work of a loaded machine, as records. They are passed to `committed` once all loaded
        records are committed.
        """

    def committed(self, partition: int, leader_epoch: int, records: Sequence[Any]) -> None:
        """Process committed records of a partition that this broker leads. Called before the replies are set, so it
        must not submit events before the next iteration of the loop.
        """

    def resigned(self, partition: int) -> None:
        """Process the end of this broker's leadership of a partition, or a new leader epoch."""


class CoordinatorKind(msgspec.Struct, Generic[Record, KindMachine], frozen=True, kw_only=True):
    """One kind of coordinator."""

    topic: str
    """The internal topic."""
    entries: str
    """The plural name of a machine's entries, for log messages: groups."""
    partition_of: Callable[[str, int], int]
    """Returns the partition of a key, given the number of partitions."""
    build_machine: Callable[[], KindMachine]
    """Returns the machine of a shard, before its log is replayed. It must not reference an owner of the runtime: a
    reference cycle would keep logs open until a collection.
    """
    codec: RecordCodec[Record]
    write: Callable[[Any, Sequence[Record], int], tuple[int, int] | None] | None = None
    """Replaces `codec.encode` and `PartitionLog.append` for a log of `open_log`, for a machine with events that are
    appended alone. Arguments are the log, the records and the timestamp in ms. Returns the first and last offset, None
    if nothing is written.
    """
    appended: Callable[[Sequence[Record]], None]
    """Called with each decision's records when they are appended, before they are committed."""
    fault_effect: Callable[[Any], str]
    """Returns a log message with the effect of an unreadable record, given its key; None for a key that cannot be
    decoded either.
    """
    observer: ShardObserver | None = None
    """None if no work follows from records."""


class RuntimeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of the shards of one kind."""

    node_id: int
    partitions: int
    """Number of partitions of the topic when it is created."""
    commit_timeout_ms: int
    """A client that waits longer for a commit receives COORDINATOR_NOT_AVAILABLE."""
    load_bytes: int
    """Maximum size of one read from the log, in bytes."""
