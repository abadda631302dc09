"""WriteTxnMarkers: writes transaction markers to partitions that this broker leads.

Key
    27

Versions
    1-2

Behaviour
    - Sent by transaction coordinators, and by tools that abort hanging transactions (KIP-664).
    - The response waits until each marker is committed: on every in-sync replica, at least min.insync.replicas, and
      flushed if the log's settings require it. The marker ends the producer's transaction in the partition: the last
      stable offset advances, and waiting read_committed fetches are completed.
    - In __consumer_offsets, the group coordinator writes the marker, and commits or discards the transaction's offsets.
    - A repeated marker is written again without effect. A partition that occurs twice in a marker gets it once.
    - TRANSACTION_COORDINATOR_FENCED for an old coordinator epoch, INVALID_PRODUCER_EPOCH for an old producer epoch,
      INVALID_REQUEST for a negative producer id or epoch; no marker is written then.
    - UNKNOWN_TOPIC_OR_PARTITION for a partition without a replica here, NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS,
      KAFKA_STORAGE_ERROR; REQUEST_TIMED_OUT for a marker that is not committed within request.timeout.ms, although it
      may be written.
    - Each marker of the request has a result, in the request's order.

Version notes
    - Since version 2, a marker has the transaction.version of its transaction (KIP-1228). With 2, its epoch is above
      that of the transaction's batches, so a marker with the current epoch is rejected while a transaction is open.
      Request version 1 means transaction.version 0.

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
"""Markers passed to a group coordinator before the loop continues with other work: some milliseconds."""
_NOT_COORDINATED_HERE = frozenset(
    {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}
)
"""Errors that a transaction coordinator expects as NOT_LEADER_OR_FOLLOWER: it finds the leader and retries."""


def _failed(request: WriteTxnMarkersRequest, _version: int, error: WireError) -> WriteTxnMarkersResponse:
    return whole(_build(request, repeat(error.code)))


class _Found(msgspec.Struct):
    """The markers to write for a request."""

    codes: list[int]
    """The code of each distinct partition of each marker. Codes of written markers are set later."""
    ended: dict[int, EndedTransaction]
    """The transactions to end, by index in `codes`."""
    of_groups: dict[int, tuple[int, WritableTxnMarker]]
    """Partitions of __consumer_offsets with their markers, by index in `codes`."""
    indexes: list[int]
    """The index in `codes` of each partition of the request, in its order."""


@handles(
    WriteTxnMarkersRequest,
    requires=[of_request(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, when="the client may not ALTER the cluster")],
    failed=_failed,
)
async def write_txn_markers(request: WriteTxnMarkersRequest, context: BrokerContext) -> WriteTxnMarkersResponse:
    """Write all markers, and respond when they are committed."""
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
    """Return the partitions to which markers are written, and the errors of the others."""
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
    """Add a partition to the markers to write, or return its error."""
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
    """Write markers by the group coordinator in parts, all within one request timeout."""
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
    """Write a marker by the group coordinator, which then commits or discards the transaction's offsets."""
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
    except Exception as error:  # noqa: BLE001  # every exception becomes the error of its partition
        code = wire_error(error).code
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if code in _NOT_COORDINATED_HERE else code
    return ErrorCode.NONE


def _build(request: WriteTxnMarkersRequest, codes: Iterator[int]) -> Sliced[WriteTxnMarkersResponse]:
    """Return the response with the codes of every partition of every marker."""
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
