"""Errors of a transactional id's event: one exception for each wire error, with its code.

Errors that every coordinator has are in `pybroker.coordinator.runtime.errors`.

    TransactionError
    ├── ConcurrentTransactionsError      the previous transaction is not complete yet: retry
    ├── InvalidProducerIdMappingError    the transactional id has another producer id, or is unknown
    ├── InvalidRequestError              the request contradicts itself
    ├── InvalidTransactionTimeoutError   the timeout is outside of the broker's limits
    ├── InvalidTxnStateError             the request does not fit the transaction's state
    ├── ProducerFencedError              the epoch is not the current one
    └── TransactionalIdNotFoundError     the transactional id is unknown
    ProducerIdNeededError                internal: the event must be repeated with a new producer id
"""

from __future__ import annotations

from pybroker.coordinator.runtime.errors import CoordinatorError
from pybroker.protocol.errors import ErrorCode


class TransactionError(CoordinatorError):
    """Base class of this package's errors for clients."""


class ConcurrentTransactionsError(TransactionError):
    """The previous transaction is not complete yet."""

    code = ErrorCode.CONCURRENT_TRANSACTIONS


class InvalidProducerIdMappingError(TransactionError):
    """The transactional id has another producer id, or is unknown."""

    code = ErrorCode.INVALID_PRODUCER_ID_MAPPING


class InvalidRequestError(TransactionError):
    """The request contradicts itself."""

    code = ErrorCode.INVALID_REQUEST


class InvalidTransactionTimeoutError(TransactionError):
    """The transaction timeout is outside of the broker's limits."""

    code = ErrorCode.INVALID_TRANSACTION_TIMEOUT


class InvalidTxnStateError(TransactionError):
    """The request does not fit the transaction's state."""

    code = ErrorCode.INVALID_TXN_STATE


class ProducerFencedError(TransactionError):
    """The producer's epoch is not the current one."""

    code = ErrorCode.PRODUCER_FENCED


class TransactionalIdNotFoundError(TransactionError):
    """The transactional id is unknown."""

    code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


class ProducerIdNeededError(Exception):
    """The decision needs a new producer id: the event must be repeated with one."""
