"""TxnOffsetCommit: commits offsets of a group as part of a transaction.

Key
    28

Versions
    0-5

Behaviour
    - The offsets are written to __consumer_offsets at once, as a batch of the transaction. Until its marker is written,
      their only effect is that OffsetFetch with require_stable returns UNSTABLE_OFFSET_COMMIT.
    - When the transaction commits, the last offset commit of a partition counts, whether transactional or not.
    - Each partition succeeds or fails independently. UNKNOWN_TOPIC_OR_PARTITION for an unknown topic or partition;
      OFFSET_METADATA_TOO_LARGE for metadata longer than offset.metadata.max.bytes.
    - The first commit of a transaction verifies with its coordinator that the group's partition of __consumer_offsets
      is part of it (KIP-890): INVALID_TXN_STATE if not, TRANSACTION_ABORTABLE since version 4.
      COORDINATOR_LOAD_IN_PROGRESS without a response, so that the client retries without another FindCoordinator.
    - Errors of all partitions: INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION (also for an
      old member epoch, KIP-848), INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, NOT_COORDINATOR,
      COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.

Version notes
    - Before version 2, COORDINATOR_NOT_AVAILABLE instead of COORDINATOR_LOAD_IN_PROGRESS, which older producers cannot
      handle.
    - Since version 3, the consumer's member id and generation are checked (KIP-447), if the request has either.
    - Since version 5, the coordinator adds the group's partition to the transaction (transaction.version 2).

Not done
    - None.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from pybroker.broker.transaction_verification import Producer, VerificationMode
from pybroker.coordinator.group.errors import InvalidGroupIdError
from pybroker.coordinator.group.events import CommitTransactionalOffsets
from pybroker.coordinator.group.offsets_topic import OFFSETS_TOPIC
from pybroker.handlers.errors import ApiError, wire_error
from pybroker.handlers.registry import handles
from pybroker.machine.parts import MANY, length_of_lists, parts_of_lists
from pybroker.machine.runner import UncommittedError
from pybroker.machine.slices import whole
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items, of_request
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.slices import Sliced
    from pybroker.metadata.image import TopicsImage
    from pybroker.protocol.messages.txn_offset_commit import TxnOffsetCommitRequestPartition

_FIRST_VERSION_THAT_KNOWS_LOADING = 2
_OPEN = 0
"""The guard value of a transaction that is open in the group's partition."""


def _failed(request: TxnOffsetCommitRequest, version: int, error: WireError) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(topics=whole(_refused(request.topics, _known(error.code, version))))


def _known(code: ErrorCode, version: int) -> ErrorCode:
    """Return the error code for a client of that request version."""
    if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and version < _FIRST_VERSION_THAT_KNOWS_LOADING:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return code


def _refused(
    topics: Iterable[TxnOffsetCommitRequestTopic], code: ErrorCode
) -> Sliced[list[TxnOffsetCommitResponseTopic]]:
    refused = []
    for topic in topics:
        partitions = []
        for partition in topic.partitions:
            index = partition.partition_index
            partitions.append(TxnOffsetCommitResponsePartition(partition_index=index, error_code=code))
            yield
        refused.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=partitions))
        yield
    return refused


@handles(
    TxnOffsetCommitRequest,
    requires=[
        of_request(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, select(TxnOffsetCommitRequest.transactional_id)),
        of_request(Operation.READ, ResourceType.GROUP, select(TxnOffsetCommitRequest.group_id)),
        of_items(
            Operation.READ, ResourceType.TOPIC, select(TxnOffsetCommitRequest.topics, TxnOffsetCommitRequestTopic.name)
        ),
    ],
    failed=_failed,
)
async def txn_offset_commit(request: TxnOffsetCommitRequest, context: BrokerContext) -> TxnOffsetCommitResponse:
    """Commit the offsets of existing partitions, and return the results of all."""
    topics: dict[str, TxnOffsetCommitResponseTopic] = {}
    slices = context.services.slices
    ids = await slices.run(_sort_out(request, context.image.topics, topics))
    if not request.topics:
        return TxnOffsetCommitResponse(topics=list(topics.values()))
    try:
        guard = await _verify(request, context)
    except Exception as error:  # noqa: BLE001 - it becomes the error of all existing partitions
        code = _known(wire_error(error).code, context.version)
        committed = await slices.run(_refused(request.topics, code))
    else:
        committed = await _commit(request, context, ids, guard)
    for topic in committed:
        before = topics.setdefault(topic.name, topic)
        if before is not topic:
            before.partitions += topic.partitions
    return TxnOffsetCommitResponse(topics=list(topics.values()))


async def _commit(
    request: TxnOffsetCommitRequest, context: BrokerContext, ids: Mapping[str, bytes], guard: int | None
) -> list[TxnOffsetCommitResponseTopic]:
    """Commit in parts, so that the loop serves other requests in between."""
    is_one = length_of_lists(request.topics, "partitions") <= MANY
    committed: list[TxnOffsetCommitResponseTopic] = []
    overdue: ErrorCode | None = None
    for part in [request.topics] if is_one else parts_of_lists(request.topics, "partitions"):
        code = overdue
        if code is None:
            event = CommitTransactionalOffsets(msgspec.structs.replace(request, topics=part), ids, guard)
            try:
                response: TxnOffsetCommitResponse = await context.services.groups.submit(request.group_id, event)
            except Exception as error:  # noqa: BLE001 - it becomes the error of this part
                code = _known(wire_error(error).code, context.version)
                if isinstance(error, UncommittedError):
                    overdue = code  # The following parts would time out too.
            else:
                committed += response.topics
                guard = None if guard is None else _OPEN
        if code is not None:
            committed += await context.services.slices.run(_refused(part, code))
            await asyncio.sleep(0)
    return committed


async def _verify(request: TxnOffsetCommitRequest, context: BrokerContext) -> int | None:
    """Return the verification guard for the append. Raises the error if the transaction may not commit offsets."""
    if not request.group_id:
        raise InvalidGroupIdError
    services = context.services
    mode = VerificationMode.of_txn_offset_commit(context.version)
    bumps_epoch = mode is VerificationMode.ADD
    if not services.config.transaction_partition_verification_enable and not bumps_epoch:
        return None
    producer = Producer(request.transactional_id, request.producer_id, request.producer_epoch)
    guard = services.groups.begin_verification(
        request.group_id, request.producer_id, request.producer_epoch, bumps_epoch=bumps_epoch
    )
    if guard == _OPEN:
        return guard
    partition = (OFFSETS_TOPIC, services.groups.partition_for(request.group_id))
    code = (await services.verification.verify(producer, [partition], mode))[partition]
    if code == ErrorCode.NETWORK_EXCEPTION:
        raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "the transaction could not be verified")
    if code != ErrorCode.NONE:
        raise ApiError(code)
    return guard


def _sort_out(
    request: TxnOffsetCommitRequest, topics: TopicsImage, refused: dict[str, TxnOffsetCommitResponseTopic]
) -> Sliced[dict[str, bytes]]:
    """Remove unknown partitions from the request, add their errors to `refused`, and return the topic ids by name."""
    ids = {}
    left = []
    for topic in request.topics:
        found = topics.by_name.get(topic.name)
        there = () if found is None else found.partitions
        if found is not None:
            ids[topic.name] = found.topic_id
        partitions: list[TxnOffsetCommitRequestPartition] = []
        missing: list[TxnOffsetCommitRequestPartition] = []
        for partition in topic.partitions:
            (partitions if partition.partition_index in there else missing).append(partition)
            yield
        if missing:
            (removed,) = yield from _refused(
                [TxnOffsetCommitRequestTopic(name=topic.name, partitions=missing)], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            refused.setdefault(
                topic.name, TxnOffsetCommitResponseTopic(name=topic.name)
            ).partitions += removed.partitions
            topic.partitions = partitions
        if partitions:
            left.append(topic)
        yield
    request.topics = left
    return ids
