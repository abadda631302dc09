"""TransactionMetadata: one transactional id, its producer and its transaction, as an immutable value.

Owns every step of one (Kafka's `TransactionMetadata`): which epoch, producer ids, partitions and times the value has
after it. A step that `states.TRANSITIONS` does not list raises `TransitionError`. Must not know who may ask for a step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.transaction.states import TRANSACTION_LIFE, TransactionState, TransactionStep

if TYPE_CHECKING:
    from collections.abc import Iterable

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
MAX_EPOCH = (1 << 15) - 1
EXHAUSTED_EPOCH = MAX_EPOCH - 1
"""No client gets an epoch above: one is left by which the coordinator can fence."""
NOT_BEGUN = -1
FIRST_VERSION_WITH_EPOCH_BUMP = 2
"""Level of `transaction.version` from which every transaction's end raises the epoch (KIP-890, part 2)."""
NO_PARTITIONS: frozenset[tuple[str, int]] = frozenset()

_following = TRANSACTION_LIFE.following
_OPEN = (TransactionState.ONGOING, TransactionState.PREPARE_EPOCH_FENCE)
_PREPARED = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


class TransactionMetadata(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One transactional id. Its `gc=False` holds as nothing in it can refer back to it."""

    producer_id: int
    previous_producer_id: int = NO_PRODUCER_ID
    """The id before the last step, which is mostly the same."""
    next_producer_id: int = NO_PRODUCER_ID
    """The id that the completion gives, where the epochs of this one are used up; -1 for none."""
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The epoch before, which a retried request may name; -1 for none. It is not written down, as in Kafka."""
    timeout_ms: int
    """How long a transaction may be open."""
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[tuple[str, int]] = NO_PARTITIONS
    """Topics and indexes that the transaction has written to."""
    started_ms: int = NOT_BEGUN
    """When the transaction began."""
    updated_ms: int
    """When the value changed last."""
    client_version: int = 0
    """The level of transaction.version that the client's requests follow."""

    @property
    def is_prepared(self) -> bool:
        """Whether the transaction's end is decided, and markers are due."""
        return self.state in _PREPARED

    @property
    def commits(self) -> bool:
        """Whether the markers of a prepared transaction commit."""
        return self.state is TransactionState.PREPARE_COMMIT

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether no further epoch of the producer id may be given to a client."""
        return self.producer_epoch >= EXHAUSTED_EPOCH

    def bump(self, timeout_ms: int, expected_epoch: int | None, now: int) -> TransactionMetadata | None:
        """Return it with the next epoch, for a producer that begins; None where `expected_epoch` is fenced.

        A producer that names the epoch before repeats a request that was answered: it gets the same epoch again.
        """
        epoch, last = self.producer_epoch + 1, NO_PRODUCER_EPOCH
        if expected_epoch is not None:
            if expected_epoch == self.producer_epoch or self.producer_epoch == NO_PRODUCER_EPOCH:
                last = self.producer_epoch
            elif expected_epoch == self.last_producer_epoch:
                epoch, last = self.producer_epoch, self.last_producer_epoch
            else:
                return None
        return self._initialized(self.producer_id, epoch, last, timeout_ms, now)

    def rotate(self, producer_id: int, timeout_ms: int, now: int, *, keeps_last: bool) -> TransactionMetadata:
        """Return it with a new producer id, whose epochs begin at 0."""
        last = self.producer_epoch if keeps_last else NO_PRODUCER_EPOCH
        return self._initialized(producer_id, 0, last, timeout_ms, now)

    def add(self, partitions: Iterable[tuple[str, int]], client_version: int, now: int) -> TransactionMetadata:
        """Return it with an open transaction that also has these partitions."""
        return msgspec.structs.replace(
            self,
            state=_following(self.state, TransactionStep.ADD),
            partitions=self.partitions.union(partitions),
            previous_producer_id=self.producer_id,
            started_ms=self.started_ms if self.state is TransactionState.ONGOING else now,
            updated_ms=now,
            client_version=client_version,
        )

    def prepare(
        self, *, commit: bool, client_version: int, now: int, next_producer_id: int = NO_PRODUCER_ID
    ) -> TransactionMetadata:
        """Return it with its transaction's end decided."""
        epoch, last = self.producer_epoch, self.last_producer_epoch
        if client_version >= FIRST_VERSION_WITH_EPOCH_BUMP:
            epoch, last = min(self.producer_epoch + 1, MAX_EPOCH), self.producer_epoch
        return msgspec.structs.replace(
            self,
            state=_following(self.state, TransactionStep.COMMIT if commit else TransactionStep.ABORT),
            producer_epoch=epoch,
            last_producer_epoch=last,
            previous_producer_id=self.producer_id,
            next_producer_id=next_producer_id,
            # An abort without a transaction has to begin some time, too.
            started_ms=self.started_ms if self.state in _OPEN else now,
            updated_ms=now,
            client_version=client_version,
        )

    def fence(self, server_version: int, now: int, next_producer_id: int = NO_PRODUCER_ID) -> TransactionMetadata:
        """Return it with its open transaction to be aborted, and an epoch that its producer does not have.

        `server_version` is the level of transaction.version in force. The epoch is given to nobody: the client asks
        again, and gets the one after it.
        """
        fenced = msgspec.structs.replace(self, state=_following(self.state, TransactionStep.FENCE))
        if server_version < FIRST_VERSION_WITH_EPOCH_BUMP:
            epoch = min(self.producer_epoch + 1, MAX_EPOCH)
            fenced = msgspec.structs.replace(fenced, producer_epoch=epoch, last_producer_epoch=NO_PRODUCER_EPOCH)
            server_version = 0
        return fenced.prepare(commit=False, client_version=server_version, now=now, next_producer_id=next_producer_id)

    def complete(self, now: int) -> TransactionMetadata:
        """Return it after all markers are written."""
        producer_id, epoch = self.producer_id, self.producer_epoch
        if self.client_version >= FIRST_VERSION_WITH_EPOCH_BUMP and self.next_producer_id != NO_PRODUCER_ID:
            producer_id, epoch = self.next_producer_id, 0
        return msgspec.structs.replace(
            self,
            state=_following(self.state, TransactionStep.COMPLETE),
            producer_id=producer_id,
            producer_epoch=epoch,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
            partitions=NO_PARTITIONS,
            updated_ms=now,
        )

    def _initialized(self, producer_id: int, epoch: int, last: int, timeout_ms: int, now: int) -> TransactionMetadata:
        return msgspec.structs.replace(
            self,
            state=_following(self.state, TransactionStep.INITIALIZE),
            producer_id=producer_id,
            previous_producer_id=self.producer_id,
            producer_epoch=epoch,
            last_producer_epoch=last,
            timeout_ms=timeout_ms,
            partitions=NO_PARTITIONS,
            started_ms=NOT_BEGUN,
            updated_ms=now,
        )
