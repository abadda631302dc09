"""Why a transactional id's event is refused: one exception for each wire error, which carries its code.

What every coordinator refuses is in `pybroker.coordinator.runtime.errors`.

    TransactionError
    ├── ConcurrentTransactionsError      the transaction before is not over yet: ask again
    ├── InvalidProducerIdMappingError    the transactional id has another producer id, or is not known
    ├── InvalidRequestError              the request contradicts itself
    ├── InvalidTransactionTimeoutError   outside of what the broker allows
    ├── InvalidTxnStateError             what is asked for does not fit the transaction's state
    ├── ProducerFencedError              the epoch is not the one in force
    └── TransactionalIdNotFoundError     nobody has this transactional id
    ProducerIdNeededError                not for clients: the event is to come again with a fresh producer id
"""

from __future__ import annotations

from pybroker.coordinator.runtime.errors import CoordinatorError
from pybroker.protocol.errors import ErrorCode


class TransactionError(CoordinatorError):
    """Base of what this package raises for clients."""


class ConcurrentTransactionsError(TransactionError):
    """The transaction before is not over yet."""

    code = ErrorCode.CONCURRENT_TRANSACTIONS


class InvalidProducerIdMappingError(TransactionError):
    """The transactional id has another producer id, or is not known."""

    code = ErrorCode.INVALID_PRODUCER_ID_MAPPING


class InvalidRequestError(TransactionError):
    """The request contradicts itself."""

    code = ErrorCode.INVALID_REQUEST


class InvalidTransactionTimeoutError(TransactionError):
    """The transaction timeout is outside of what the broker allows."""

    code = ErrorCode.INVALID_TRANSACTION_TIMEOUT


class InvalidTxnStateError(TransactionError):
    """What is asked for does not fit the transaction's state."""

    code = ErrorCode.INVALID_TXN_STATE


class ProducerFencedError(TransactionError):
    """The producer's epoch is not the one in force."""

    code = ErrorCode.PRODUCER_FENCED


class TransactionalIdNotFoundError(TransactionError):
    """Nobody has this transactional id."""

    code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


class ProducerIdNeededError(Exception):
    """The decision needs a producer id that nobody has: the event is to come again, with one."""
