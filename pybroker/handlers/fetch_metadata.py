"""Fetch on controller listeners: returns committed records of the metadata log to observers.

Key
    1

Versions
    12-18

Behaviour
    - Only for partition 0 of __cluster_metadata, by name or by its topic id. INVALID_REQUEST for anything else, for a
      negative offset, and for a negative last fetched epoch.
    - The active controller returns whole committed batches: at least one, but at most 1 MiB, even if more is requested.
      The high watermark is the end of the committed records. Other controllers return NOT_LEADER_OR_FOLLOWER,
      FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH, with the leader and its endpoint. A follower that knows no epoch
      sends -1.
    - INCONSISTENT_CLUSTER_ID for another cluster's id.
    - For an offset that is deleted from the log, or whose previous epoch only a snapshot could confirm, the response
      has the id of the newest snapshot to fetch. If the epoch before the offset differs from the log's, it has the
      diverging epoch and its end offset.
    - Without new records, the response waits for a commit, at most max_wait_ms or 30 s, and does not count against
      queued.max.requests meanwhile. min_bytes is treated as 1.
    - DescribeQuorum lists a node that fetches as an observer.

Version notes
    - Topics by id since version 13; the follower's id in replica_state since version 15; leader endpoints since version
      17, as in Kafka, although version 16 has the field.
    - Only consumers use versions before 12, and controllers do not serve them.

Not done
    - Fetch sessions: each request is full, and the response's session_id is 0. Voters receive entries by RaftMessages.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from pybroker.handlers.metadata_log import endpoint_of, is_foreign, is_metadata_log, leader_error, leader_of
from pybroker.handlers.registry import handles
from pybroker.machine.reply import Reply
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    SnapshotId,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from pybroker.controller.service import Controller
    from pybroker.handlers.context import ControllerContext
    from pybroker.handlers.errors import WireError
    from pybroker.protocol.messages.fetch import FetchPartition

FIRST_VERSION_OF_FOLLOWERS = 12
LONGEST_WAIT_MS = 30_000
"""Maximum wait, even if the follower requests more."""
_FIRST_VERSION_WITH_ENDPOINTS = 17
MOST_BYTES = 1 << 20
"""Maximum bytes of a response, even if the follower requests more.

Reading and checking them takes a few milliseconds.
"""

# References to waiting tasks, so that they are not garbage-collected. They end with the controller.
_waiting: set[asyncio.Task[None]] = set()


def _failed(_request: FetchRequest, _version: int, error: WireError) -> FetchResponse:
    return FetchResponse(error_code=error.code)


@handles(
    FetchRequest,
    requires=[of_request(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)],
    failed=_failed,
    min_version=FIRST_VERSION_OF_FOLLOWERS,
    listeners=ListenerRole.CONTROLLER,
)
def fetch_metadata(request: FetchRequest, context: ControllerContext) -> FetchResponse | Reply:
    """Respond at once, or after the next commit."""
    if is_foreign(request.cluster_id, context):
        return FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    requested = [(topic, partition) for topic in request.topics for partition in topic.partitions]
    if len(request.topics) != 1 or len(requested) != 1:
        return FetchResponse(error_code=ErrorCode.INVALID_REQUEST)
    [(topic, partition)] = requested
    if not is_metadata_log(topic.topic, topic.topic_id, partition.partition):
        return FetchResponse(error_code=ErrorCode.INVALID_REQUEST)
    voter = context.services.voter
    found = _fetch(voter, request, partition)
    if found.error_code or found.records or _leads_away(found) or request.max_wait_ms <= 0 or voter is None:
        return _response(request, found, context)
    reply = Reply()
    task = asyncio.get_running_loop().create_task(_wait(reply, voter, request, partition, context))
    _waiting.add(task)
    task.add_done_callback(_waiting.discard)
    return reply


async def _wait(
    reply: Reply, voter: Controller, request: FetchRequest, partition: FetchPartition, context: ControllerContext
) -> None:
    """Respond after the next commit, or after the maximum wait."""
    try:
        try:
            async with asyncio.timeout(min(request.max_wait_ms, LONGEST_WAIT_MS) / 1000):
                await voter.wait_committed(partition.fetch_offset)
        except TimeoutError:
            pass
        response = _response(request, _fetch(voter, request, partition), context)
    except Exception as error:  # noqa: BLE001 - it becomes the reply
        reply(None, error)
    else:
        reply(response, None)


def _fetch(voter: Controller | None, request: FetchRequest, partition: FetchPartition) -> PartitionData:
    """Return the partition's response data at this moment. It has no records if the follower is caught up."""
    epoch = partition.current_leader_epoch
    leader_id, leader_epoch = leader_of(voter)
    found = PartitionData(current_leader=LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch))
    found.aborted_transactions = None
    offset = partition.fetch_offset
    if request.max_wait_ms < 0 or offset < 0 or (offset > 0 and partition.last_fetched_epoch < 0):
        found.error_code = ErrorCode.INVALID_REQUEST
        return found
    found.error_code = leader_error(voter, epoch)
    if not found.error_code and partition.last_fetched_epoch > leader_epoch:
        # A newer leader exists that this node does not know yet, so the follower's log does not diverge.
        found.error_code = ErrorCode.UNKNOWN_LEADER_EPOCH
    if found.error_code or voter is None:
        return found
    _note(voter, request, partition)
    found.high_watermark = found.last_stable_offset = voter.committed_offset
    served = voter.served
    found.log_start_offset = served.start_offset
    there = served.epoch_before(partition.fetch_offset, voter.committed_offset)
    if there is None:
        snapshot = served.newest_snapshot()
        if snapshot is None:
            found.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        else:
            found.snapshot_id = SnapshotId(end_offset=snapshot.end_offset, epoch=snapshot.epoch)
    elif partition.fetch_offset and there != partition.last_fetched_epoch:
        diverging, end_offset = served.end_of_epoch(partition.last_fetched_epoch, voter.committed_offset)
        found.diverging_epoch = EpochEndOffset(epoch=diverging, end_offset=end_offset)
    else:
        limit = min(max(partition.partition_max_bytes, 1), max(request.max_bytes, 1), MOST_BYTES)
        found.records = voter.read(partition.fetch_offset, limit)
    return found


def _leads_away(found: PartitionData) -> bool:
    """Return whether the follower must fetch a snapshot or truncate its log first."""
    return found.snapshot_id.end_offset >= 0 or found.diverging_epoch.end_offset >= 0


def _note(voter: Controller, request: FetchRequest, partition: FetchPartition) -> None:
    node_id = max(request.replica_id, request.replica_state.replica_id)
    if node_id >= 0:
        voter.note_observer(node_id, partition.replica_directory_id, partition.fetch_offset, int(time.time() * 1000))


def _response(request: FetchRequest, found: PartitionData, context: ControllerContext) -> FetchResponse:
    [topic] = request.topics
    response = FetchResponse(
        responses=[FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=[found])]
    )
    endpoint = endpoint_of(found.current_leader.leader_id, context)
    if found.error_code and endpoint is not None and context.version >= _FIRST_VERSION_WITH_ENDPOINTS:
        node_id, host, port = endpoint
        response.node_endpoints = [NodeEndpoint(node_id=node_id, host=host, port=port)]
    return response
