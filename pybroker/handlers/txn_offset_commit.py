"""TxnOffsetCommit: keeps how far a group has read as part of a transaction: it counts when the transaction commits.

Key
    28

Versions
    0-5

Behaviour
    - The offsets are written to __consumer_offsets at once, as a batch of the transaction. Until its marker comes they
      change what OffsetFetch answers in one way: with require_stable their partitions are UNSTABLE_OFFSET_COMMIT.
    - When the transaction commits, the last commit of a partition counts, whether a transaction made it or not.
    - Each partition succeeds or fails by itself. A topic or partition that is unknown is UNKNOWN_TOPIC_OR_PARTITION;
      text longer than offset.metadata.max.bytes is OFFSET_METADATA_TOO_LARGE.
    - The first commit of a transaction asks its coordinator whether the group's partition of __consumer_offsets is part
      of it (KIP-890): INVALID_TXN_STATE where not, TRANSACTION_ABORTABLE from version 4 on. No answer is
      COORDINATOR_LOAD_IN_PROGRESS: the client retries the commit, and does not find the group's coordinator again.
    - Errors of all partitions: INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION (also for a
      member's epoch that has passed, KIP-848), INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, NOT_COORDINATOR,
      COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.

Version notes
    - Before version 2 COORDINATOR_LOAD_IN_PROGRESS is COORDINATOR_NOT_AVAILABLE, which older producers survive.
    - From version 3 on the consumer's member id and generation are checked (KIP-447); a request that names neither is
      not.
    - From version 5 on the coordinator adds the group's partition to the transaction itself (transaction.version 2).

Not done
    - None.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from pybroker.broker.transaction_verification import Producer, Wish
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
"""The guard of a transaction that is open in the group's partition."""


def _failed(request: TxnOffsetCommitRequest, version: int, error: WireError) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(topics=whole(_refused(request.topics, _known(error.code, version))))


def _known(code: ErrorCode, version: int) -> ErrorCode:
    """Return the code that a client of that version knows."""
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
    """Commit what can be, and answer for all."""
    topics: dict[str, TxnOffsetCommitResponseTopic] = {}
    slices = context.services.slices
    ids = await slices.run(_sort_out(request, context.image.topics, topics))
    if not request.topics:
        return TxnOffsetCommitResponse(topics=list(topics.values()))
    try:
        guard = await _verify(request, context)
    except Exception as error:  # noqa: BLE001 - it is the answer to all that was not refused
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
    """Commit in decisions that hold up nobody for long: each partition gets its own result."""
    is_one = length_of_lists(request.topics, "partitions") <= MANY
    committed: list[TxnOffsetCommitResponseTopic] = []
    overdue: ErrorCode | None = None
    for part in [request.topics] if is_one else parts_of_lists(request.topics, "partitions"):
        code = overdue
        if code is None:
            event = CommitTransactionalOffsets(msgspec.structs.replace(request, topics=part), ids, guard)
            try:
                response: TxnOffsetCommitResponse = await context.services.groups.submit(request.group_id, event)
            except Exception as error:  # noqa: BLE001 - it is the answer to this part
                code = _known(wire_error(error).code, context.version)
                if isinstance(error, UncommittedError):
                    overdue = code  # Each part that follows would wait as long.
            else:
                committed += response.topics
                guard = None if guard is None else _OPEN
        if code is not None:
            committed += await context.services.slices.run(_refused(part, code))
            await asyncio.sleep(0)
    return committed


async def _verify(request: TxnOffsetCommitRequest, context: BrokerContext) -> int | None:
    """Return the guard that the commit is to be appended with; raises why the transaction may not commit offsets."""
    if not request.group_id:
        raise InvalidGroupIdError
    services = context.services
    wish = Wish.of_txn_offset_commit(context.version)
    bumps_epoch = wish is Wish.ADD
    if not services.config.transaction_partition_verification_enable and not bumps_epoch:
        return None
    producer = Producer(request.transactional_id, request.producer_id, request.producer_epoch)
    guard = services.groups.begin_verification(
        request.group_id, request.producer_id, request.producer_epoch, bumps_epoch=bumps_epoch
    )
    if guard == _OPEN:
        return guard
    partition = (OFFSETS_TOPIC, services.groups.partition_for(request.group_id))
    code = (await services.verification.verify(producer, [partition], wish))[partition]
    if code == ErrorCode.NETWORK_EXCEPTION:
        raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "the transaction could not be verified")
    if code != ErrorCode.NONE:
        raise ApiError(code)
    return guard


def _sort_out(
    request: TxnOffsetCommitRequest, topics: TopicsImage, refused: dict[str, TxnOffsetCommitResponseTopic]
) -> Sliced[dict[str, bytes]]:
    """Take out of the request what does not exist, add the answers to it to `refused`, and return the topics' ids."""
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
            (gone,) = yield from _refused(
                [TxnOffsetCommitRequestTopic(name=topic.name, partitions=missing)], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            refused.setdefault(topic.name, TxnOffsetCommitResponseTopic(name=topic.name)).partitions += gone.partitions
            topic.partitions = partitions
        if partitions:
            left.append(topic)
        yield
    request.topics = left
    return ids
