"""WriteTxnMarkers: ends transactions in the partitions that this broker leads.

Key
    27

Versions
    1-2

Behaviour
    - Asked by coordinators of transactions, and by tools that end a transaction which nobody coordinates (KIP-664).
    - The marker of each partition is answered for when it is committed: on every replica in sync, of which
      min.insync.replicas are needed, and on the device where the log's settings want that. It ends the producer's
      transaction there: the last stable offset passes it, and read_committed fetches that waited are woken.
    - In __consumer_offsets the group coordinator writes the marker, and lets the transaction's offsets count or go.
    - A marker that comes twice is written twice, and changes nothing; a partition that it names twice gets it once.
    - TRANSACTION_COORDINATOR_FENCED for the coordinator epoch of a predecessor, INVALID_PRODUCER_EPOCH for an epoch of
      the producer that has gone by, INVALID_REQUEST for an id or epoch of a producer below 0; nothing is written
      then.
    - UNKNOWN_TOPIC_OR_PARTITION for a partition that is not here, NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS,
      KAFKA_STORAGE_ERROR; REQUEST_TIMED_OUT for one that is not committed within request.timeout.ms, whose marker may
      be there all the same.
    - Each marker of the request has a result, in the request's order.

Version notes
    - From version 2 on the marker says which transaction.version the transaction follows (KIP-1228): by 2 its epoch is
      beyond that of the transaction's batches, so that a marker of the epoch in force is refused while a transaction is
      open. Version 1 is read as 0.

Not done
    - Version 0, as in Kafka 4.
"""

from __future__ import annotations

import asyncio
from itertools import repeat
from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.group.offsets_topic import OFFSETS_TOPIC
from pybroker.handlers.errors import denial, wire_error
from pybroker.handlers.registry import handles
from pybroker.machine.parts import parts
from pybroker.machine.slices import whole
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from pybroker.security import authorizer
from pybroker.security.operations import CLUSTER_NAME, Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pybroker.coordinator.runtime.markers import EndedTransaction
    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.slices import Sliced
    from pybroker.protocol.messages.write_txn_markers import WritableTxnMarker


_AT_ONCE = 100
"""Markers that a group coordinator is handed before others on the loop have their turn: some milliseconds."""
_NOT_COORDINATED_HERE = frozenset(
    {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}
)
"""What a coordinator of transactions expects as NOT_LEADER_OR_FOLLOWER: it finds the leader, and retries."""


def _failed(request: WriteTxnMarkersRequest, _version: int, error: WireError) -> WriteTxnMarkersResponse:
    return whole(_build(request, repeat(error.code)))


class _Found(msgspec.Struct):
    """What there is to write for a request."""

    codes: list[int]
    """Of each partition of each marker, once; those of what is written come later."""
    ended: dict[int, EndedTransaction]
    """By their indexes in `codes`."""
    of_groups: dict[int, tuple[int, WritableTxnMarker]]
    """By their indexes in `codes`, partitions of __consumer_offsets and their markers."""
    indexes: list[int]
    """In `codes`, of all partitions of the request in its order."""


@handles(
    WriteTxnMarkersRequest,
    requires=[of_request(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, when="the client may not ALTER the cluster")],
    failed=_failed,
)
async def write_txn_markers(request: WriteTxnMarkersRequest, context: BrokerContext) -> WriteTxnMarkersResponse:
    """Write all markers, and answer when those are committed that were."""
    slices, markers = context.services.slices, context.services.markers
    enough = (Operation.ALTER, Operation.CLUSTER_ACTION)
    if not any(authorizer.allowed(context, operation, ResourceType.CLUSTER, CLUSTER_NAME) for operation in enough):
        denied: WriteTxnMarkersResponse = await slices.run(_build(request, repeat(denial(ResourceType.CLUSTER).code)))
        return denied
    found: _Found = await slices.run(_look_up(request, context))
    of_groups = None
    if found.of_groups:
        of_groups = asyncio.ensure_future(_end_in_groups(list(found.of_groups.values()), context))
    for at, code in zip(found.ended, await markers.write(list(found.ended.values())), strict=True):
        found.codes[at] = code
    if of_groups is not None:
        for at, code in zip(found.of_groups, await of_groups, strict=True):
            found.codes[at] = code
    response: WriteTxnMarkersResponse = await slices.run(_build(request, map(found.codes.__getitem__, found.indexes)))
    return response


def _look_up(request: WriteTxnMarkersRequest, context: BrokerContext) -> Sliced[_Found]:
    """Find the partitions that markers are written to, and say of the others why not."""
    found = _Found([], {}, {}, [])
    for marker in request.markers:
        known: dict[tuple[str, int], int] = {}
        for topic in marker.topics:
            for index in topic.partition_indexes:
                at = known.setdefault((topic.name, index), len(found.codes))
                found.indexes.append(at)
                if at == len(found.codes):
                    found.codes.append(_sort(marker, topic.name, index, found, context))
                yield
            yield
        yield
    return found


def _sort(marker: WritableTxnMarker, topic: str, index: int, found: _Found, context: BrokerContext) -> ErrorCode:
    """Add a partition to those that a marker is written to, or return what keeps it from being written."""
    if marker.producer_id < 0 or marker.producer_epoch < 0:
        return ErrorCode.INVALID_REQUEST
    partition = context.services.partitions.get(topic, index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic == OFFSETS_TOPIC:
        found.of_groups[len(found.codes)] = index, marker
    else:
        found.ended[len(found.codes)] = (
            partition,
            marker.producer_id,
            marker.producer_epoch,
            marker.transaction_result,
            marker.coordinator_epoch,
            marker.transaction_version,
        )
    return ErrorCode.NONE


async def _end_in_groups(ended: Sequence[tuple[int, WritableTxnMarker]], context: BrokerContext) -> list[ErrorCode]:
    """Have the group coordinator write markers, some at a time, and all within the time of one."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + context.services.config.request_timeout_ms / 1000
    codes: list[ErrorCode] = []
    for some in parts(ended, most=_AT_ONCE):
        if loop.time() >= deadline:
            codes += [ErrorCode.REQUEST_TIMED_OUT] * len(some)
            continue
        codes += await asyncio.gather(
            *(_end_in_group(partition, marker, context, deadline) for partition, marker in some)
        )
    return codes


async def _end_in_group(
    partition: int, marker: WritableTxnMarker, context: BrokerContext, deadline: float
) -> ErrorCode:
    """Have the group coordinator write a marker: the offsets of the transaction count from then on, or go."""
    try:
        async with asyncio.timeout_at(deadline):
            await context.services.groups.complete_transaction(
                partition,
                marker.producer_id,
                marker.producer_epoch,
                marker.coordinator_epoch,
                marker.transaction_result,
                marker.transaction_version,
            )
    except TimeoutError:
        return ErrorCode.REQUEST_TIMED_OUT
    except Exception as error:  # noqa: BLE001  # every failure is the answer about its partition
        code = wire_error(error).code
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if code in _NOT_COORDINATED_HERE else code
    return ErrorCode.NONE


def _build(request: WriteTxnMarkersRequest, codes: Iterator[int]) -> Sliced[WriteTxnMarkersResponse]:
    """Build the answer of the codes of every partition of every marker."""
    response = WriteTxnMarkersResponse(markers=[])
    for marker in request.markers:
        topics = []
        for topic in marker.topics:
            partitions = []
            for index in topic.partition_indexes:
                partitions.append(WritableTxnMarkerPartitionResult(partition_index=index, error_code=next(codes)))
                yield
            topics.append(WritableTxnMarkerTopicResult(name=topic.name, partitions=partitions))
            yield
        response.markers.append(WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics))
        yield
    return response
