"""AddPartitionsToTxn: adds partitions to a transaction, or verifies that they are part of it.

Key
    24

Versions
    0-5

Behaviour
    - All partitions of a transaction are added, or none: if one is unknown (UNKNOWN_TOPIC_OR_PARTITION) or not
      authorized (TOPIC_AUTHORIZATION_FAILED), the others have OPERATION_NOT_ATTEMPTED.
    - Begins a transaction if none is open. An error of the transaction is returned for every partition:
      INVALID_PRODUCER_ID_MAPPING for a transactional id that is unknown or has another producer id, PRODUCER_FENCED for
      another epoch, CONCURRENT_TRANSACTIONS until the markers of the previous transaction are written, NOT_COORDINATOR.
    - INVALID_REQUEST for an empty transactional id.
    - Requests with many transactions are processed in parts. After a commit that times out, further transactions of the
      same coordinator are rejected with COORDINATOR_NOT_AVAILABLE at once.

Version notes
    - Versions 0-3 are sent by clients for one transaction. Internal topics are rejected with
      TOPIC_AUTHORIZATION_FAILED, also without an authorizer.
    - Later versions are sent by brokers for many transactions, and need CLUSTER_ACTION. With `verify_only`, no
      partition is added, and one that is not in the open transaction has TRANSACTION_ABORTABLE (KIP-890).
    - Version 5: the client uses transaction.version 2.
    - PRODUCER_FENCED since version 2, INVALID_PRODUCER_EPOCH before.

Not done
    - None.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from pybroker.coordinator.transaction.events import AddPartitions, ProducerIdentity, VerifyPartitions
from pybroker.handlers.authorizing import may
from pybroker.handlers.errors import ApiError, denial, fencing, wire_error
from pybroker.handlers.registry import handles
from pybroker.machine.parts import MANY, length_of_lists, parts
from pybroker.machine.reply import Reply
from pybroker.machine.runner import UncommittedError
from pybroker.machine.slices import whole
from pybroker.metadata.internal_topics import INTERNAL_TOPICS
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from pybroker.security.authorizer import allowed_on_cluster
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items, of_request
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Mapping, Sequence

    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.slices import Sliced

    Partition = tuple[str, int]
    Outcome = int | Mapping[Partition, int] | list[AddPartitionsToTxnTopicResult]
    """The outcome of a transaction: one code for all partitions, a code of each, or the results if some are rejected.
    """

_FIRST_VERSION_WITH_FENCED = 2
_FIRST_VERSION_OF_BROKERS = 4
_FIRST_VERSION_WITH_EPOCH_BUMP = 5
_TRANSACTION_VERSION = 2
"""The level of transaction.version that a client of that request version uses."""
_AT_ONCE = 200
"""Transactions, topics and partitions processed before the loop continues with other work: some milliseconds."""


def _failed(request: AddPartitionsToTxnRequest, version: int, error: WireError) -> AddPartitionsToTxnResponse:
    code = _known(error, version)
    if version >= _FIRST_VERSION_OF_BROKERS:
        return AddPartitionsToTxnResponse(error_code=code)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=whole(_build(request.v3_and_below_topics, code)))


def _known(error: WireError, version: int) -> int:
    """Return the error code for a client of that request version."""
    return fencing(error.code, is_known=version >= _FIRST_VERSION_WITH_FENCED)


@handles(
    AddPartitionsToTxnRequest,
    requires=[
        of_request(
            Operation.WRITE,
            ResourceType.TRANSACTIONAL_ID,
            select(AddPartitionsToTxnRequest.v3_and_below_transactional_id),
        ),
        of_items(
            Operation.WRITE,
            ResourceType.TOPIC,
            select(AddPartitionsToTxnRequest.v3_and_below_topics, AddPartitionsToTxnTopic.name),
            select(
                AddPartitionsToTxnRequest.transactions,
                AddPartitionsToTxnTransaction.topics,
                AddPartitionsToTxnTopic.name,
            ),
            when="the version is 3 or earlier: later ones are asked by brokers",
        ),
        of_request(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, when="the version is 4 or later"),
    ],
    failed=_failed,
    authorizes_itself=True,
)
def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, context: BrokerContext
) -> Reply | AddPartitionsToTxnResponse | Awaitable[AddPartitionsToTxnResponse]:
    """Add the partitions of each transaction, or verify them."""
    if context.version < _FIRST_VERSION_OF_BROKERS:
        return _add_one(request, context)
    if not allowed_on_cluster(context, Operation.CLUSTER_ACTION):
        raise denial(ResourceType.CLUSTER)
    if _are_many(request.transactions):
        return _query_about_many(request.transactions, context)
    requested = _Requested(request.transactions, context, {})
    reply = requested.completed.through(
        lambda _: AddPartitionsToTxnResponse(results_by_transaction=whole(requested.build_results()))
    )
    whole(requested.begin())
    return reply


def _add_one(
    request: AddPartitionsToTxnRequest, context: BrokerContext
) -> Reply | AddPartitionsToTxnResponse | Awaitable[AddPartitionsToTxnResponse]:
    """Add the partitions of a client's transaction."""
    topics = request.v3_and_below_topics
    if _weight(topics) > MANY:
        return _add_many(request, context)
    allowed = whole(_writable(topics, context))
    if not _are_possible(topics, context, allowed):
        refused = whole(_refused(topics, context, allowed))
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=refused or [])
    return _submit(request, whole(_partitions(topics)), context).through(
        lambda _: AddPartitionsToTxnResponse(results_by_topic_v3_and_below=whole(_build(topics, ErrorCode.NONE)))
    )


async def _add_many(request: AddPartitionsToTxnRequest, context: BrokerContext) -> AddPartitionsToTxnResponse:
    """Add many partitions in time slices. They are still one event of the coordinator."""
    topics, slices = request.v3_and_below_topics, context.services.slices
    allowed = await slices.run(_writable(topics, context))
    results = await slices.run(_refused(topics, context, allowed))
    if results is None:
        partitions = await slices.run(_partitions(topics))
        code: int = ErrorCode.NONE
        try:
            await _submit(request, partitions, context)
        except Exception as error:  # noqa: BLE001 - it becomes the error of all partitions
            code = _known(wire_error(error), context.version)
        results = await slices.run(_build(topics, code))
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)


def _submit(request: AddPartitionsToTxnRequest, partitions: frozenset[Partition], context: BrokerContext) -> Reply:
    """Submit a client's partitions to the coordinator."""
    if not request.v3_and_below_transactional_id:
        raise ApiError(ErrorCode.INVALID_REQUEST)
    identity = ProducerIdentity(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
    event = AddPartitions(request.v3_and_below_transactional_id, identity, partitions, client_version=0)
    return context.services.transactions.add(event)


async def _query_about_many(
    transactions: Sequence[AddPartitionsToTxnTransaction], context: BrokerContext
) -> AddPartitionsToTxnResponse:
    """Process many transactions in parts, so that the loop serves other requests in between."""
    slices = context.services.slices
    overdue: dict[int, int] = {}
    results: list[AddPartitionsToTxnResult] = []
    for some in parts(transactions, lambda one: 1 + _weight(one.topics), most=_AT_ONCE):
        requested = _Requested(some, context, overdue)
        await slices.run(requested.begin())
        await requested.completed
        results += await slices.run(requested.build_results())
        await asyncio.sleep(0)
    return AddPartitionsToTxnResponse(results_by_transaction=results)


class _Requested:
    """A brokers' query about some transactions, until each has its outcome."""

    def __init__(
        self, transactions: Sequence[AddPartitionsToTxnTransaction], context: BrokerContext, overdue: dict[int, int]
    ) -> None:
        """`overdue` maps coordinator partitions with a timed-out commit to the error code of further transactions.

        These are rejected, since they would time out too.
        """
        self.completed = Reply()
        """Set when each transaction has its outcome."""
        self._transactions = transactions
        self._context = context
        self._overdue = overdue
        # By index in `_transactions`. NONE also represents an outcome that is not set yet.
        self._outcomes: list[Outcome] = [ErrorCode.NONE] * len(transactions)
        # Invariant: the number of transactions without an outcome, plus one until all are submitted.
        self._left = len(transactions) + 1

    def begin(self) -> Sliced[None]:
        """Submit all transactions. The failure of one does not affect the others."""
        coordinator = self._context.services.transactions
        for place, requested in enumerate(self._transactions):
            refused = None
            if not _are_possible(requested.topics, self._context, None):
                refused = yield from _refused(requested.topics, self._context, None)
            code = self._code_without_querying(requested)
            if refused is not None:
                self._note(place, refused)
            elif code is not ErrorCode.NONE:
                self._note(place, code)
            else:
                partitions = yield from _partitions(requested.topics)
                try:
                    reply = coordinator.submit(requested.transactional_id, self._event(requested, partitions))
                except Exception as error:  # noqa: BLE001 - handled like an error of the reply
                    self._complete(place, None, error)
                else:
                    reply.on_complete(partial(self._complete, place))
            yield
        self._count_down()

    def build_results(self) -> Sliced[list[AddPartitionsToTxnResult]]:
        """Return the results of all transactions, in their order."""
        results = []
        for requested, outcome in zip(self._transactions, self._outcomes, strict=True):
            topics = outcome if isinstance(outcome, list) else (yield from _build(requested.topics, outcome))
            results.append(AddPartitionsToTxnResult(transactional_id=requested.transactional_id, topic_results=topics))
            yield
        return results

    def _code_without_querying(self, requested: AddPartitionsToTxnTransaction) -> int:
        if not requested.transactional_id:
            return ErrorCode.INVALID_REQUEST
        if not self._overdue:
            return ErrorCode.NONE
        partition = self._context.services.transactions.partition_for(requested.transactional_id)
        return self._overdue.get(partition, ErrorCode.NONE)

    def _event(
        self, requested: AddPartitionsToTxnTransaction, partitions: frozenset[Partition]
    ) -> AddPartitions | VerifyPartitions:
        identity = ProducerIdentity(requested.producer_id, requested.producer_epoch)
        if requested.verify_only:
            return VerifyPartitions(requested.transactional_id, identity, partitions)
        bumps_epoch = self._context.version >= _FIRST_VERSION_WITH_EPOCH_BUMP
        return AddPartitions(
            requested.transactional_id, identity, partitions, _TRANSACTION_VERSION if bumps_epoch else 0
        )

    def _complete(self, place: int, codes: Mapping[Partition, int] | None, error: Exception | None) -> None:
        """Record the coordinator's result: the codes of verified partitions, or None for added ones."""
        if error is None:
            self._note(place, ErrorCode.NONE if codes is None else codes)
            return
        code = wire_error(error).code
        if isinstance(error, UncommittedError):
            coordinator = self._context.services.transactions
            self._overdue[coordinator.partition_for(self._transactions[place].transactional_id)] = code
        self._note(place, code)

    def _note(self, place: int, outcome: Outcome) -> None:
        self._outcomes[place] = outcome
        self._count_down()

    def _count_down(self) -> None:
        self._left -= 1
        if not self._left:
            self.completed(None, None)


def _are_many(transactions: Iterable[AddPartitionsToTxnTransaction]) -> bool:
    weight = 0
    for one in transactions:
        weight += 1 + _weight(one.topics)
        if weight > _AT_ONCE:
            return True
    return False


def _weight(topics: Sequence[AddPartitionsToTxnTopic]) -> int:
    """Return the number of topics and partitions."""
    return len(topics) + length_of_lists(topics, "partitions")


def _writable(topics: Iterable[AddPartitionsToTxnTopic], context: BrokerContext) -> Sliced[set[str]]:
    """Return the topics to which a client may write in a transaction, without internal topics."""
    writable = set()
    for topic in topics:
        name = topic.name
        if name not in INTERNAL_TOPICS and may(context, Operation.WRITE, ResourceType.TOPIC, name):
            writable.add(name)
        yield
    return writable


def _are_possible(topics: Iterable[AddPartitionsToTxnTopic], context: BrokerContext, allowed: set[str] | None) -> bool:
    """Return whether `_refused` would return None. A fast path for the usual case, which builds no results."""
    known = context.image.topics.by_name
    for topic in topics:
        found = known.get(topic.name)
        if found is None or not (allowed is None or topic.name in allowed):
            return False
        of_topic = found.partitions
        for index in topic.partitions:
            if index not in of_topic:
                return False
    return True


def _refused(
    topics: Iterable[AddPartitionsToTxnTopic], context: BrokerContext, allowed: set[str] | None
) -> Sliced[list[AddPartitionsToTxnTopicResult] | None]:
    """Return the results if some partitions are rejected, None if none is.

    `allowed` are the authorized topics; None allows all.
    """
    known = context.image.topics.by_name
    is_refused = False
    results = []
    for topic in topics:
        found = known.get(topic.name)
        partitions = []
        for index in topic.partitions:
            code = ErrorCode.OPERATION_NOT_ATTEMPTED
            if allowed is not None and topic.name not in allowed:
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif found is None or index not in found.partitions:
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            is_refused |= code is not ErrorCode.OPERATION_NOT_ATTEMPTED
            partitions.append(AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code))
            yield
        results.append(AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=partitions))
        yield
    return results if is_refused else None


def _partitions(topics: Iterable[AddPartitionsToTxnTopic]) -> Sliced[frozenset[Partition]]:
    partitions = set()
    for topic in topics:
        for index in topic.partitions:
            partitions.add((topic.name, index))
            yield
        yield
    return frozenset(partitions)


def _build(
    topics: Iterable[AddPartitionsToTxnTopic], outcome: int | Mapping[Partition, int]
) -> Sliced[list[AddPartitionsToTxnTopicResult]]:
    """Return the results of partitions, which have one common code, or one each."""
    results = []
    for topic in topics:
        partitions = []
        for index in topic.partitions:
            code = outcome if isinstance(outcome, int) else outcome[topic.name, index]
            partitions.append(AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code))
            yield
        results.append(AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=partitions))
        yield
    return results
