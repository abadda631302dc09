"""OwnPartitions: access of transactions to the partitions that the coordinator's own broker leads, without requests.

Owns only this interface; `pybroker.node` implements it. Must not know logs, nor decisions about a transaction.
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
    """Epoch of the marker."""
    commits: bool
    coordinator_epoch: int
    version: int
    """The `transaction.version` of the transaction."""


class OwnPartitions(Protocol):
    """Updates partitions of this broker. Used from the loop's thread."""

    def takes(self, topic: str) -> bool:
        """Return whether `write` supports the topic: not if a group coordinator writes its markers."""

    def write(self, ended: Sequence[EndedHere], then: Callable[[list[int]], None]) -> None:
        """Append the marker of each partition. `then` is called once, with Kafka's error codes in the same order: when
        all appended markers are committed, which may be immediately, or after a timeout.
        """

    def confirm(self, added: AddPartitions, coordinator_epoch: int) -> None:
        """Record in partitions that they were added to the producer's open transaction: its first batch is appended
        without verification (KIP-890). Called before the end of the transaction is decided; the marker ends it.
        Partitions without a leader here are skipped: their leaders verify the transaction.
        """
