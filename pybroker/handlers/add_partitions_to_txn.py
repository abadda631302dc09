"""AddPartitionsToTxn: partitions become part of a transaction, or it is asked whether they are.

Key
    24

Versions
    0-5

Behaviour
    - All partitions of a transaction are added, or none: with one that is unknown (UNKNOWN_TOPIC_OR_PARTITION) or may
      not be written to (TOPIC_AUTHORIZATION_FAILED, internal topics too), the others are OPERATION_NOT_ATTEMPTED.
    - The transaction begins with the first. Otherwise every partition has the code of the transaction:
      INVALID_PRODUCER_ID_MAPPING for a transactional id that is unknown or has another producer id, PRODUCER_FENCED for
      another epoch, CONCURRENT_TRANSACTIONS until the markers of the transaction before are written, NOT_COORDINATOR.
    - An empty transactional id is INVALID_REQUEST.

Version notes
    - Versions 0-3 come from clients, about one transaction. Later ones come from brokers, about many, and need
      CLUSTER_ACTION; with `verify_only` nothing is added, and a partition that is not in the open transaction is
      TRANSACTION_ABORTABLE (KIP-890).
    - Version 5: the client follows transaction.version 2.
    - PRODUCER_FENCED from version 2 on, INVALID_PRODUCER_EPOCH before.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.transaction.events import AddPartitions, ProducerIdentity, VerifyPartitions
from pybroker.handlers.errors import ApiError, denial, fencing, wire_error
from pybroker.handlers.judging import may
from pybroker.handlers.registry import handles
from pybroker.handlers.topic_metadata import INTERNAL_TOPICS
from pybroker.machine.parts import MANY, length_of_lists
from pybroker.machine.reply import Reply
from pybroker.machine.slices import whole
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

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.slices import Sliced

    Partition = tuple[str, int]

_FIRST_VERSION_WITH_FENCED = 2
_FIRST_VERSION_OF_BROKERS = 4
_FIRST_VERSION_WITH_EPOCH_BUMP = 5
_TRANSACTION_VERSION = 2
"""The level of transaction.version that a client of that version follows."""


def _failed(request: AddPartitionsToTxnRequest, version: int, error: WireError) -> AddPartitionsToTxnResponse:
    code = fencing(error.code, is_known=version >= _FIRST_VERSION_WITH_FENCED)
    if version >= _FIRST_VERSION_OF_BROKERS:
        return AddPartitionsToTxnResponse(error_code=code)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(request.v3_and_below_topics, code))


@handles(
    AddPartitionsToTxnRequest,
    requires=[
        of_request(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "v3_and_below_transactional_id"),
        of_items(
            Operation.WRITE,
            ResourceType.TOPIC,
            *("v3_and_below_topics.name", "transactions.topics.name"),
            when="the version is 3 or earlier: later ones are asked by brokers",
        ),
        of_request(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, when="the version is 4 or later"),
    ],
    failed=_failed,
    judges_itself=True,
)
def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, context: RequestContext
) -> Reply | AddPartitionsToTxnResponse | Awaitable[AddPartitionsToTxnResponse]:
    """Add the partitions of each transaction, or say whether it has them."""
    if context.version < _FIRST_VERSION_OF_BROKERS:
        return _add_one(request, context)
    if not allowed_on_cluster(context, Operation.CLUSTER_ACTION):
        raise denial(ResourceType.CLUSTER)
    answer = _Answer(request.transactions)
    for place, asked in enumerate(request.transactions):
        answer.begin(place, asked, context)
    return answer.reply


def _add_one(
    request: AddPartitionsToTxnRequest, context: RequestContext
) -> Reply | AddPartitionsToTxnResponse | Awaitable[AddPartitionsToTxnResponse]:
    """Add the partitions of a client's transaction."""
    topics = request.v3_and_below_topics
    allowed = {topic.name for topic in topics if _may_write(context, topic.name)}
    if length_of_lists(topics, "partitions") > MANY:
        return _add_many(request, context, allowed)
    if not _are_possible(topics, context, allowed):
        refused = whole(_refused(topics, context, allowed))
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=refused or [])
    return _submit(request, context).through(
        lambda _: AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(topics, ErrorCode.NONE))
    )


async def _add_many(
    request: AddPartitionsToTxnRequest, context: RequestContext, allowed: set[str]
) -> AddPartitionsToTxnResponse:
    """Add so many partitions that the loop serves others in between; it is one decision all the same."""
    topics, slices = request.v3_and_below_topics, context.services.slices
    refused = await slices.run(_refused(topics, context, allowed))
    if refused is None:
        await _submit(request, context)
        refused = await slices.run(_build(topics, lambda _name, _index: ErrorCode.NONE))
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=refused)


def _submit(request: AddPartitionsToTxnRequest, context: RequestContext) -> Reply:
    """Hand in what a client adds."""
    if not request.v3_and_below_transactional_id:
        raise ApiError(ErrorCode.INVALID_REQUEST)
    identity = ProducerIdentity(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
    partitions = _partitions(request.v3_and_below_topics)
    event = AddPartitions(request.v3_and_below_transactional_id, identity, partitions, client_version=0)
    return context.services.transactions.add(event)


class _Answer:
    """What a broker is answered, once there is a result for each transaction that it asks about."""

    def __init__(self, transactions: Sequence[AddPartitionsToTxnTransaction]) -> None:
        self.reply = Reply()
        self._results = [AddPartitionsToTxnResult(transactional_id=one.transactional_id) for one in transactions]
        # How many have no result yet.
        self._left = len(transactions)
        if not transactions:
            self._complete()

    def begin(self, place: int, asked: AddPartitionsToTxnTransaction, context: RequestContext) -> None:
        """Hand in what is asked about one transaction; its failure is the answer about this one alone."""

        def complete(codes: Mapping[Partition, int] | None, error: Exception | None) -> None:
            if error is not None:
                self._note(place, _results(asked.topics, wire_error(error).code))
            else:
                self._note(place, _verified(asked.topics, codes))

        if not _are_possible(asked.topics, context, None):
            refused = whole(_refused(asked.topics, context, None))
            self._note(place, refused or [])
        elif not asked.transactional_id:
            self._note(place, _results(asked.topics, ErrorCode.INVALID_REQUEST))
        else:
            try:
                reply = context.services.transactions.submit(asked.transactional_id, _event(asked, context.version))
            except Exception as error:  # noqa: BLE001 - as one that comes later
                complete(None, error)
            else:
                reply.on_complete(complete)

    def _note(self, place: int, topics: list[AddPartitionsToTxnTopicResult]) -> None:
        self._results[place].topic_results = topics
        self._left -= 1
        if not self._left:
            self._complete()

    def _complete(self) -> None:
        self.reply(AddPartitionsToTxnResponse(results_by_transaction=self._results), None)


def _event(asked: AddPartitionsToTxnTransaction, version: int) -> AddPartitions | VerifyPartitions:
    identity = ProducerIdentity(asked.producer_id, asked.producer_epoch)
    partitions = _partitions(asked.topics)
    if asked.verify_only:
        return VerifyPartitions(asked.transactional_id, identity, partitions)
    client_version = _TRANSACTION_VERSION if version >= _FIRST_VERSION_WITH_EPOCH_BUMP else 0
    return AddPartitions(asked.transactional_id, identity, partitions, client_version)


def _may_write(context: RequestContext, name: str) -> bool:
    if context.authorizer is None:
        return True
    return name not in INTERNAL_TOPICS and may(context, Operation.WRITE, ResourceType.TOPIC, name)


def _are_possible(topics: Iterable[AddPartitionsToTxnTopic], context: RequestContext, allowed: set[str] | None) -> bool:
    """Whether `_refused` would refuse nothing, which is mostly so: without a result for each partition."""
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
    topics: Iterable[AddPartitionsToTxnTopic], context: RequestContext, allowed: set[str] | None
) -> Sliced[list[AddPartitionsToTxnTopicResult] | None]:
    """Return the answer where some partitions cannot be in a transaction, None where all can.

    `allowed` are the topics that may be written to, None: all.
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
    return results if is_refused else None


def _partitions(topics: Iterable[AddPartitionsToTxnTopic]) -> frozenset[Partition]:
    return frozenset((topic.name, index) for topic in topics for index in topic.partitions)


def _results(topics: Iterable[AddPartitionsToTxnTopic], code: int) -> list[AddPartitionsToTxnTopicResult]:
    result = AddPartitionsToTxnPartitionResult
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                result(partition_index=index, partition_error_code=code) for index in topic.partitions
            ],
        )
        for topic in topics
    ]


def _verified(
    topics: Iterable[AddPartitionsToTxnTopic], codes: Mapping[Partition, int] | None
) -> list[AddPartitionsToTxnTopicResult]:
    """Build the results of partitions that were added (None), or asked about."""
    if codes is None:
        return _results(topics, ErrorCode.NONE)
    return whole(_build(topics, lambda name, index: codes[name, index]))


def _build(
    topics: Iterable[AddPartitionsToTxnTopic], code_of: Callable[[str, int], int]
) -> Sliced[list[AddPartitionsToTxnTopicResult]]:
    results = []
    for topic in topics:
        partitions = []
        for index in topic.partitions:
            code = code_of(topic.name, index)
            partitions.append(AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code))
            yield
        results.append(AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=partitions))
    return results
