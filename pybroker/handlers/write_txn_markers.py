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
    - A marker that comes twice is written twice, and changes nothing.
    - TRANSACTION_COORDINATOR_FENCED for the coordinator epoch of a predecessor, INVALID_PRODUCER_EPOCH for an epoch of
      the producer that has gone by; nothing is written then.
    - UNKNOWN_TOPIC_OR_PARTITION for a partition that is not here, NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS,
      KAFKA_STORAGE_ERROR; REQUEST_TIMED_OUT for one that is not committed within request.timeout.ms, whose marker is
      there all the same.
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
from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.group.offsets_topic import OFFSETS_TOPIC
from pybroker.handlers.errors import denial, wire_error
from pybroker.handlers.registry import handles
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
    from collections.abc import Iterator

    from pybroker.coordinator.runtime.markers import EndedTransaction
    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError
    from pybroker.protocol.messages.write_txn_markers import WritableTxnMarker


_AT_ONCE = 500
"""Partitions looked up before others on the loop have their turn."""
_NOT_COORDINATED_HERE = frozenset(
    {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}
)
"""What a coordinator of transactions expects as NOT_LEADER_OR_FOLLOWER: it looks for the leader, and tries again."""


def _failed(request: WriteTxnMarkersRequest, _version: int, error: WireError) -> WriteTxnMarkersResponse:
    return _response(request, {place: error.code for place, _marker in _places(request)})


class _Place(msgspec.Struct, frozen=True):
    """A partition of a marker: by the positions of marker and topic in the request, and its own number."""

    marker: int
    topic: int
    partition: int


@handles(
    WriteTxnMarkersRequest,
    requires=[of_request(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, when="the client may not ALTER the cluster")],
    failed=_failed,
)
async def write_txn_markers(request: WriteTxnMarkersRequest, context: RequestContext) -> WriteTxnMarkersResponse:
    """Write all markers, and answer when those are committed that were."""
    enough = (Operation.ALTER, Operation.CLUSTER_ACTION)
    if not any(authorizer.allowed(context, operation, ResourceType.CLUSTER, CLUSTER_NAME) for operation in enough):
        raise denial(ResourceType.CLUSTER)
    find, markers = context.services.partitions.get, context.services.markers
    assert markers is not None  # It is no API of controllers.
    codes: dict[_Place, int] = {}
    ended: dict[_Place, EndedTransaction] = {}
    of_groups: dict[_Place, asyncio.Future[ErrorCode]] = {}
    for number, (place, marker) in enumerate(_places(request), 1):
        if number % _AT_ONCE == 0:
            await asyncio.sleep(0)
        topic = marker.topics[place.topic].name
        partition = find(topic, place.partition)
        if partition is None:
            codes[place] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            continue
        if topic == OFFSETS_TOPIC:
            of_groups[place] = asyncio.ensure_future(_end_in_groups(place.partition, marker, context))
            continue
        ended[place] = (
            partition,
            marker.producer_id,
            marker.producer_epoch,
            marker.transaction_result,
            marker.coordinator_epoch,
            marker.transaction_version,
        )
    codes.update(zip(ended, await markers.write(list(ended.values())), strict=True))
    codes.update(zip(of_groups, await asyncio.gather(*of_groups.values()), strict=True))
    return _response(request, codes)


async def _end_in_groups(partition: int, marker: WritableTxnMarker, context: RequestContext) -> ErrorCode:
    """Have the group coordinator write a marker: the offsets of the transaction count from then on, or go."""
    try:
        async with asyncio.timeout(context.services.config.request_timeout_ms / 1000):
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


def _places(request: WriteTxnMarkersRequest) -> Iterator[tuple[_Place, WritableTxnMarker]]:
    """Yield every partition of every marker, each once."""
    for at, marker in enumerate(request.markers):
        for position, topic in enumerate(marker.topics):
            for index in topic.partition_indexes:
                yield _Place(at, position, index), marker


def _response(request: WriteTxnMarkersRequest, codes: dict[_Place, int]) -> WriteTxnMarkersResponse:
    def topics(at: int, marker: WritableTxnMarker) -> list[WritableTxnMarkerTopicResult]:
        return [
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(
                        partition_index=index, error_code=codes[_Place(at, position, index)]
                    )
                    for index in topic.partition_indexes
                ],
            )
            for position, topic in enumerate(marker.topics)
        ]

    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics(at, marker))
            for at, marker in enumerate(request.markers)
        ]
    )
