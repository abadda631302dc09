"""The meaning of a coordinator's error codes for a transaction, by request, as in Kafka's `TransactionManager`.

Owns the tables only.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from pybroker.protocol.errors import ErrorCode as E


class Decision(Enum):
    """The consequence of a response."""

    DONE = auto()
    AGAIN = auto()
    """A transient error: retry at the same coordinator."""
    SEARCH = auto()
    """As AGAIN, but find the coordinator again first."""
    ABORTABLE = auto()
    """The transaction has failed; the producer can continue."""
    NEW_EPOCH = auto()
    """As ABORTABLE, and the producer requires another epoch."""
    FATAL = auto()
    """No transaction of this producer can succeed any more."""


class Request(Enum):
    """A request to a coordinator."""

    INIT_PRODUCER_ID = auto()
    ADD_PARTITIONS = auto()
    ADD_OFFSETS = auto()
    COMMIT_OFFSETS = auto()
    END = auto()


FENCED = frozenset({E.INVALID_PRODUCER_EPOCH, E.PRODUCER_FENCED})
"""A newer producer has the transactional id. Coordinators before Kafka 2.7 return INVALID_PRODUCER_EPOCH."""

_ALWAYS: Mapping[int, Decision] = {
    E.NONE: Decision.DONE,
    E.COORDINATOR_NOT_AVAILABLE: Decision.SEARCH,
    E.NOT_COORDINATOR: Decision.SEARCH,
    E.COORDINATOR_LOAD_IN_PROGRESS: Decision.AGAIN,
    E.CONCURRENT_TRANSACTIONS: Decision.AGAIN,
    E.TRANSACTION_ABORTABLE: Decision.ABORTABLE,
    E.UNKNOWN_PRODUCER_ID: Decision.NEW_EPOCH,
}

_ADD_PARTITIONS: Mapping[int, Decision] = {
    E.UNKNOWN_TOPIC_OR_PARTITION: Decision.AGAIN,
    **dict.fromkeys(
        (
            *FENCED,
            E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            E.CLUSTER_AUTHORIZATION_FAILED,
            E.INVALID_TXN_STATE,
            E.INVALID_PRODUCER_ID_MAPPING,
        ),
        Decision.FATAL,
    ),
}

_COMMIT_OFFSETS: Mapping[int, Decision] = {
    E.REQUEST_TIMED_OUT: Decision.SEARCH,
    E.UNKNOWN_TOPIC_OR_PARTITION: Decision.AGAIN,
    **dict.fromkeys(
        (
            E.GROUP_AUTHORIZATION_FAILED,
            E.TOPIC_AUTHORIZATION_FAILED,
            E.FENCED_INSTANCE_ID,
            E.UNKNOWN_MEMBER_ID,
            E.ILLEGAL_GENERATION,
            E.STALE_MEMBER_EPOCH,
            E.FENCED_MEMBER_EPOCH,
            E.REBALANCE_IN_PROGRESS,
        ),
        Decision.ABORTABLE,
    ),
}

_OWN: Mapping[Request, Mapping[int, Decision]] = {
    Request.INIT_PRODUCER_ID: {E.TRANSACTION_ABORTABLE: Decision.FATAL, E.UNKNOWN_PRODUCER_ID: Decision.FATAL},
    Request.ADD_PARTITIONS: _ADD_PARTITIONS,
    Request.ADD_OFFSETS: {E.GROUP_AUTHORIZATION_FAILED: Decision.ABORTABLE},
    Request.COMMIT_OFFSETS: _COMMIT_OFFSETS,
    Request.END: {},
}


def decide(request: Request, code: int) -> Decision:
    """Return the meaning of an error code. An unlisted code is fatal, or abortable for a partition to be added."""
    unlisted = Decision.ABORTABLE if request is Request.ADD_PARTITIONS else Decision.FATAL
    return _OWN[request].get(code, _ALWAYS.get(code, unlisted))
