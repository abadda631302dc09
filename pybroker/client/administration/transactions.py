"""What an admin is shown of transactions and of the producers that partitions remember (KIP-664)."""

from __future__ import annotations

from msgspec import Struct

from pybroker.client.administration.topics import TopicPartition

NOTHING = -1
"""In place of an epoch, a sequence number or an offset that there is not."""


class TransactionListing(Struct, frozen=True):
    """A transactional id, and the state of its transaction."""

    transactional_id: str
    producer_id: int
    state: str
    """Kafka's name: Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort, PrepareEpochFence."""
    coordinator: int
    """Node id of its coordinator."""


class TransactionDescription(Struct, frozen=True):
    """A transactional id as its coordinator knows it."""

    transactional_id: str
    coordinator: int
    """Node id."""
    state: str
    """Kafka's name, as `TransactionListing.state`."""
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    """After so long without an end its coordinator aborts the transaction."""
    began_ms: int | None
    """When the transaction began, ms since 1970; None where none is open."""
    partitions: tuple[TopicPartition, ...]
    """Those that are part of it; while it ends, those that still wait for its marker."""


class ProducerState(Struct, frozen=True):
    """A producer, as a replica of a partition remembers it."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    """When it wrote last, ms since 1970."""
    coordinator_epoch: int
    """Epoch of the coordinator that wrote its last marker; `NOTHING` without one."""
    transaction_start: int
    """Offset at which its open transaction begins; `NOTHING` where none is open."""
