"""TransactionMetadata: one transactional id, its producer and its transaction, as an immutable value.

Owns every step of one (Kafka's `TransactionMetadata`): the epoch, producer ids, partitions and times of the value after
the step. A step that `states.TRANSITIONS` does not list raises `TransitionError`. Must not know authorization.
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
"""The last epoch for a client: the one above is reserved for fencing by the coordinator."""
NOT_BEGUN = -1
FIRST_VERSION_WITH_EPOCH_BUMP = 2
"""Level of `transaction.version` from which every transaction's end increments the epoch (KIP-890, part 2)."""
NO_PARTITIONS: frozenset[tuple[str, int]] = frozenset()

_following = TRANSACTION_LIFE.following
_OPEN = (TransactionState.ONGOING, TransactionState.PREPARE_EPOCH_FENCE)
_PREPARED = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


class TransactionMetadata(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One transactional id. `gc=False` is safe because no field can reference the value itself."""

    producer_id: int
    previous_producer_id: int = NO_PRODUCER_ID
    """The id before the last step, which is mostly the same."""
    next_producer_id: int = NO_PRODUCER_ID
    """The id after the completion, if the epochs of this one are exhausted; -1 for none."""
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The previous epoch, which a retried request may contain; -1 for none. It is not in records, as in Kafka."""
    timeout_ms: int
    """The transaction timeout."""
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[tuple[str, int]] = NO_PARTITIONS
    """Topics and indexes of the transaction's partitions."""
    started_ms: int = NOT_BEGUN
    """When the transaction began."""
    updated_ms: int
    """When the value last changed."""
    client_version: int = 0
    """The level of transaction.version of the client's requests."""

    @property
    def is_prepared(self) -> bool:
        """Whether the transaction's end is decided, and markers must be written."""
        return self.state in _PREPARED

    @property
    def commits(self) -> bool:
        """Whether the markers of a prepared transaction commit."""
        return self.state is TransactionState.PREPARE_COMMIT

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether the producer id has no further epoch for a client."""
        return self.producer_epoch >= EXHAUSTED_EPOCH

    def bump(self, timeout_ms: int, expected_epoch: int | None, now: int) -> TransactionMetadata | None:
        """Return the value with the next epoch, for an InitProducerId; None if `expected_epoch` is fenced.

        A producer that sends the previous epoch repeats a request: it gets the same epoch again.
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
        """Return the value with a new producer id, whose epochs begin at 0."""
        last = self.producer_epoch if keeps_last else NO_PRODUCER_EPOCH
        return self._initialized(producer_id, 0, last, timeout_ms, now)

    def add(self, partitions: Iterable[tuple[str, int]], client_version: int, now: int) -> TransactionMetadata:
        """Return the value with an open transaction that includes these partitions."""
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
        """Return the value with the decided end of its transaction."""
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
            # An abort without a transaction needs a start time, too.
            started_ms=self.started_ms if self.state in _OPEN else now,
            updated_ms=now,
            client_version=client_version,
        )

    def fence(self, server_version: int, now: int, next_producer_id: int = NO_PRODUCER_ID) -> TransactionMetadata:
        """Return the value with its open transaction to be aborted, and an epoch that fences its producer.

        `server_version` is the finalized level of transaction.version. No client gets this epoch: the client repeats
        its request, and gets the next one.
        """
        fenced = msgspec.structs.replace(self, state=_following(self.state, TransactionStep.FENCE))
        if server_version < FIRST_VERSION_WITH_EPOCH_BUMP:
            epoch = min(self.producer_epoch + 1, MAX_EPOCH)
            fenced = msgspec.structs.replace(fenced, producer_epoch=epoch, last_producer_epoch=NO_PRODUCER_EPOCH)
            server_version = 0
        return fenced.prepare(commit=False, client_version=server_version, now=now, next_producer_id=next_producer_id)

    def complete(self, now: int) -> TransactionMetadata:
        """Return the value after all markers are written."""
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
