"""What the transaction machine is asked.

Owns the shapes alone. Where a decision may need a producer id that nobody has, the event carries one in `fresh_id`; an
event without it that needs one is refused with `ProducerIdNeededError`, as ids are not to be used up by every request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence


class ProducerIdentity(NamedTuple):
    """A producer id and an epoch of it; -1 both for none."""

    producer_id: int = -1
    producer_epoch: int = -1


NO_IDENTITY = ProducerIdentity()


class InitProducerId(msgspec.Struct, frozen=True, gc=False):
    """Answered by the `ProducerIdentity`; by None where an open transaction is to be aborted first: ask again."""

    transactional_id: str
    timeout_ms: int
    expected: ProducerIdentity | None = None
    """What the producer has, or had (KIP-360)."""
    fresh_id: int | None = None


class AddPartitions(msgspec.Struct, frozen=True, gc=False):
    """Answered by None. Every partition exists."""

    transactional_id: str
    identity: ProducerIdentity
    partitions: frozenset[tuple[str, int]]
    client_version: int
    """The level of transaction.version that the request's version stands for."""


class VerifyPartitions(msgspec.Struct, frozen=True, gc=False):
    """Answered by the error code of each partition: NONE for those in the open transaction."""

    transactional_id: str
    identity: ProducerIdentity
    partitions: frozenset[tuple[str, int]]


class EndTransaction(msgspec.Struct, frozen=True, gc=False):
    """Answered by the `ProducerIdentity` for the next transaction, -1 both for clients before transaction.version 2."""

    transactional_id: str
    identity: ProducerIdentity
    commit: bool
    client_version: int
    fresh_id: int | None = None


class CompleteTransaction(msgspec.Struct, frozen=True, gc=False):
    """Every partition has its marker. Answered by None, also where another coordinator was faster."""

    transactional_id: str
    identity: ProducerIdentity
    """Which the markers had."""


class AbortTimedOut(msgspec.Struct, frozen=True, gc=False):
    """Transactions that were open for too long are aborted, some at a time. Answered by a `TimedOut`."""

    fresh_ids: tuple[tuple[str, int], ...] = ()
    """Producer ids for those transactional ids that the answer to the event before named."""


class TimedOut(NamedTuple):
    """What `AbortTimedOut` has found."""

    aborted: Sequence[str]
    need_ids: Sequence[str]
    """Those whose epochs are used up."""
    are_more: bool
    """Whether more are due than are aborted at a time."""


class ExpireTransactionalIds(msgspec.Struct, frozen=True):
    """Transactional ids that were silent for too long are forgotten. Answered by None."""


class DescribeTransaction(msgspec.Struct, frozen=True):
    """Answered by the `TransactionMetadata`; raises `TransactionalIdNotFoundError`."""

    transactional_id: str


class ListTransactions(msgspec.Struct, frozen=True):
    """Answered by all transactional ids: a list of (transactional id, `TransactionMetadata`), and the time in ms."""
