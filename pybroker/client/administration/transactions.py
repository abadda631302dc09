"""Transactions and producer states of partitions in Admin's results (KIP-664). Plain values."""

from __future__ import annotations

from msgspec import Struct

from pybroker.client.administration.topics import TopicPartition

NOTHING = -1
"""Stands for a missing epoch, sequence number or offset."""


class TransactionListing(Struct, frozen=True):
    """A transactional id, and the state of its transaction."""

    transactional_id: str
    producer_id: int
    state: str
    """Kafka's name: Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort, PrepareEpochFence."""
    coordinator: int
    """Node id of its coordinator."""


class TransactionDescription(Struct, frozen=True):
    """The state of a transactional id, from its coordinator."""

    transactional_id: str
    coordinator: int
    """Node id."""
    state: str
    """Kafka's name, as `TransactionListing.state`."""
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    """Transaction timeout in ms, after which the coordinator aborts the transaction."""
    began_ms: int | None
    """When the transaction began, ms since 1970; None where none is open."""
    partitions: tuple[TopicPartition, ...]
    """The partitions of the transaction; while it ends, those that its marker is not written to yet."""


class ProducerState(Struct, frozen=True):
    """The state of a producer, in a replica of a partition."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    """Time of its last append, ms since 1970."""
    coordinator_epoch: int
    """Epoch of the coordinator that wrote its last marker; `NOTHING` without one."""
    transaction_start: int
    """First offset of its open transaction; `NOTHING` where none is open."""
