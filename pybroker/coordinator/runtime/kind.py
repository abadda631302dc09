"""CoordinatorKind: what makes the coordinators of groups, say, out of the runtime's shards.

Owns the list of what a kind hands in. Must not know any kind.
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
    """What a kind does beside answering: work that follows from committed records."""

    def unfinished(self, machine: Any) -> Sequence[Any]:
        """Return, as records, what a machine that was just loaded has left to do. They are handed to `committed` once
        all that was loaded is committed.
        """

    def committed(self, partition: int, leader_epoch: int, records: Sequence[Any]) -> None:
        """Take note of committed records of a partition that this broker leads. Called before the replies are set: it
        hands in no events before the loop's next turn.
        """

    def resigned(self, partition: int) -> None:
        """Take note that this broker leads a partition no longer, or in another leader epoch."""


class CoordinatorKind(msgspec.Struct, Generic[Record, KindMachine], frozen=True, kw_only=True):
    """One kind of coordinator."""

    topic: str
    """The internal topic."""
    entries: str
    """What a machine keeps, in the plural and for the log: groups."""
    partition_of: Callable[[str, int], int]
    """Returns the partition of a key, of so many."""
    build_machine: Callable[[], KindMachine]
    """Makes the machine of a shard, before its log is replayed. It refers to no owner of the runtime: a circle would
    keep logs open until a collection.
    """
    codec: RecordCodec[Record]
    write: Callable[[Any, Sequence[Record], int], tuple[int, int] | None] | None = None
    """Appends records to a log that `open_log` has found otherwise than by `codec.encode` and `PartitionLog.append`, of
    a machine with events that go alone: returns the first and last offset, None where nothing is written down.
    Milliseconds are the stamp.
    """
    appended: Callable[[Sequence[Record]], None]
    """Called with each decision's records when they are in the log, and before they are committed."""
    fault_effect: Callable[[Any], str]
    """Returns, for the log, what follows from a record that cannot be read, by its key; None for a key that cannot be
    read either.
    """
    observer: ShardObserver | None = None
    """None where nothing follows from records."""


class RuntimeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the configuration says about the shards of one kind."""

    node_id: int
    partitions: int
    """How many the topic will have when it is created."""
    commit_timeout_ms: int
    """A client that waits longer for a commit receives COORDINATOR_NOT_AVAILABLE."""
    load_bytes: int
    """Most that is read from the log at once."""
