"""Events of the transaction machine.

Owns only these types. If a decision may need a new producer id, the event has a field `fresh_id`. An event without it
that needs one fails with `ProducerIdNeededError`, so that not every request uses up an id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence


class ProducerIdentity(NamedTuple):
    """A producer id and its epoch; both -1 for none."""

    producer_id: int = -1
    producer_epoch: int = -1


NO_IDENTITY = ProducerIdentity()


class InitProducerId(msgspec.Struct, frozen=True, gc=False):
    """The reply is the `ProducerIdentity`, or None if an open transaction is being aborted: retry."""

    transactional_id: str
    timeout_ms: int
    expected: ProducerIdentity | None = None
    """The current or previous id and epoch of the producer (KIP-360)."""
    fresh_id: int | None = None


class AddPartitions(msgspec.Struct, frozen=True, gc=False):
    """The reply is None. Every partition exists."""

    transactional_id: str
    identity: ProducerIdentity
    partitions: frozenset[tuple[str, int]]
    client_version: int
    """The level of transaction.version of the request's version."""


class VerifyPartitions(msgspec.Struct, frozen=True, gc=False):
    """The reply is the error code of each partition: NONE for those in the open transaction."""

    transactional_id: str
    identity: ProducerIdentity
    partitions: frozenset[tuple[str, int]]


class EndTransaction(msgspec.Struct, frozen=True, gc=False):
    """The reply is the `ProducerIdentity` for the next transaction, both -1 below transaction.version 2."""

    transactional_id: str
    identity: ProducerIdentity
    commit: bool
    client_version: int
    fresh_id: int | None = None


class CompleteTransaction(msgspec.Struct, frozen=True, gc=False):
    """Every partition has its marker. The reply is None, even if another coordinator has completed it."""

    transactional_id: str
    identity: ProducerIdentity
    """The producer id and epoch of the markers."""


class AbortTimedOut(msgspec.Struct, frozen=True, gc=False):
    """Abort transactions that exceed their timeout, some at a time. The reply is a `TimedOut`."""

    fresh_ids: tuple[tuple[str, int], ...] = ()
    """Producer ids for the transactional ids in `need_ids` of the previous reply."""


class TimedOut(NamedTuple):
    """The result of `AbortTimedOut`."""

    aborted: Sequence[str]
    need_ids: Sequence[str]
    """Transactional ids with exhausted epochs."""
    are_more: bool
    """Whether more transactions are due than were aborted."""


class ExpireTransactionalIds(msgspec.Struct, frozen=True):
    """Delete expired transactional ids. The reply is None."""


class DescribeTransaction(msgspec.Struct, frozen=True):
    """The reply is the `TransactionMetadata`; raises `TransactionalIdNotFoundError`."""

    transactional_id: str


class ListTransactions(msgspec.Struct, frozen=True):
    """The reply is all transactional ids: a list of (transactional id, `TransactionMetadata`), and the time in ms."""
