"""What a coordinator's answer means for a transaction, by request: as Kafka's `TransactionManager` takes it.

Owns the tables alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from pybroker.protocol.errors import ErrorCode as E


class Verdict(Enum):
    """What follows from an answer."""

    DONE = auto()
    AGAIN = auto()
    """The same coordinator may answer otherwise in a moment."""
    SEARCH = auto()
    """As AGAIN, and the coordinator is found anew."""
    ABORTABLE = auto()
    """This transaction is lost; the producer goes on."""
    NEW_EPOCH = auto()
    """As ABORTABLE, and the producer goes on with another epoch."""
    FATAL = auto()
    """No transaction of this producer succeeds any more."""


class Request(Enum):
    """What a coordinator is asked."""

    INIT_PRODUCER_ID = auto()
    ADD_PARTITIONS = auto()
    ADD_OFFSETS = auto()
    COMMIT_OFFSETS = auto()
    END = auto()


FENCED = frozenset({E.INVALID_PRODUCER_EPOCH, E.PRODUCER_FENCED})
"""A newer producer has the transactional id; coordinators before Kafka 2.7 answer the first of them."""

_ALWAYS: Mapping[int, Verdict] = {
    E.NONE: Verdict.DONE,
    E.COORDINATOR_NOT_AVAILABLE: Verdict.SEARCH,
    E.NOT_COORDINATOR: Verdict.SEARCH,
    E.COORDINATOR_LOAD_IN_PROGRESS: Verdict.AGAIN,
    E.CONCURRENT_TRANSACTIONS: Verdict.AGAIN,
    E.TRANSACTION_ABORTABLE: Verdict.ABORTABLE,
    E.UNKNOWN_PRODUCER_ID: Verdict.NEW_EPOCH,
}

_ADD_PARTITIONS: Mapping[int, Verdict] = {
    E.UNKNOWN_TOPIC_OR_PARTITION: Verdict.AGAIN,
    **dict.fromkeys(
        (
            *FENCED,
            E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            E.CLUSTER_AUTHORIZATION_FAILED,
            E.INVALID_TXN_STATE,
            E.INVALID_PRODUCER_ID_MAPPING,
        ),
        Verdict.FATAL,
    ),
}

_COMMIT_OFFSETS: Mapping[int, Verdict] = {
    E.REQUEST_TIMED_OUT: Verdict.SEARCH,
    E.UNKNOWN_TOPIC_OR_PARTITION: Verdict.AGAIN,
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
        Verdict.ABORTABLE,
    ),
}

_OWN: Mapping[Request, Mapping[int, Verdict]] = {
    Request.INIT_PRODUCER_ID: {E.TRANSACTION_ABORTABLE: Verdict.FATAL, E.UNKNOWN_PRODUCER_ID: Verdict.FATAL},
    Request.ADD_PARTITIONS: _ADD_PARTITIONS,
    Request.ADD_OFFSETS: {E.GROUP_AUTHORIZATION_FAILED: Verdict.ABORTABLE},
    Request.COMMIT_OFFSETS: _COMMIT_OFFSETS,
    Request.END: {},
}


def judge(request: Request, code: int) -> Verdict:
    """What an answer with this error code means. What is not listed is fatal, of a partition to be added abortable."""
    unlisted = Verdict.ABORTABLE if request is Request.ADD_PARTITIONS else Verdict.FATAL
    return _OWN[request].get(code, _ALWAYS.get(code, unlisted))
