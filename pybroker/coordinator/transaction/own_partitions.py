"""OwnPartitions: the partitions that the coordinator's own broker leads, as transactions reach them without a request.

Owns the shape alone, and `pybroker.node` makes it. Must not know logs, nor what is decided about a transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pybroker.coordinator.transaction.events import AddPartitions

    Partition = tuple[str, int]


class EndedHere(NamedTuple):
    """A transaction that ends, and the partitions that get its marker."""

    partitions: Sequence[Partition]
    producer_id: int
    producer_epoch: int
    """Of the marker."""
    commits: bool
    coordinator_epoch: int
    version: int
    """The `transaction.version` that the transaction follows."""


class OwnPartitions(Protocol):
    """Reaches partitions of this broker. Used from the loop's thread."""

    def takes(self, topic: str) -> bool:
        """Return whether markers go to a topic's partitions in this way: not where a group coordinator writes them."""

    def write(self, ended: Sequence[EndedHere], then: Callable[[list[int]], None]) -> None:
        """Append the marker of each partition. `then` is called once, with a code of Kafka for each, in this order:
        when all that were appended are committed, which may be at once, or when that takes too long.
        """

    def confirm(self, added: AddPartitions, coordinator_epoch: int) -> None:
        """Note in partitions that they were added to the producer's open transaction: its first batch is appended
        without asking (KIP-890). It is noted before the end of the transaction is decided, and ends with its marker.
        Partitions that are not here, or have another leader, are passed over: their leaders ask.
        """
