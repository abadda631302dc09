"""FetchSnapshot: returns a part of a snapshot of the metadata log (KIP-630).

Key
    59

Versions
    0-1

Behaviour
    - The active controller returns up to max_bytes (at most 8 MiB) of the file from a position. A part may begin and
      end within a batch.
    - Other controllers return NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH, with the leader.
    - SNAPSHOT_NOT_FOUND for a snapshot that does not exist; POSITION_OUT_OF_RANGE for a position that is negative, or
      not below the file's size.
    - INCONSISTENT_CLUSTER_ID for another cluster's id; INVALID_REQUEST unless it has exactly one partition;
      UNKNOWN_TOPIC_OR_PARTITION for any partition other than 0 of __cluster_metadata.

Version notes
    - Leader endpoints, and the follower's directory id: version 1.

Not done
    - None.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from pybroker.controller.quorum.snapshot.snapshots import SnapshotId
from pybroker.handlers.metadata_log import endpoint_of, is_foreign, is_metadata_log, leader_error, leader_of
from pybroker.handlers.registry import handles
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.fetch_snapshot import (
    FetchedPartitionSnapshot,
    FetchedTopicSnapshot,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from pathlib import Path

    from pybroker.handlers.context import ControllerContext
    from pybroker.handlers.errors import WireError
    from pybroker.protocol.messages.fetch_snapshot import PartitionSnapshot

_FIRST_VERSION_WITH_ENDPOINTS = 1
MOST_BYTES = 8 << 20
"""Maximum bytes of a response, even if the follower requests more."""


def _failed(_request: FetchSnapshotRequest, _version: int, error: WireError) -> FetchSnapshotResponse:
    return FetchSnapshotResponse(error_code=error.code)


@handles(
    FetchSnapshotRequest,
    requires=[of_request(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)],
    failed=_failed,
    listeners=ListenerRole.CONTROLLER,
)
async def fetch_snapshot(request: FetchSnapshotRequest, context: ControllerContext) -> FetchSnapshotResponse:
    """Read a part of the snapshot in a thread."""
    if is_foreign(request.cluster_id, context):
        return FetchSnapshotResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    requested = [(topic.name, partition) for topic in request.topics for partition in topic.partitions]
    if len(request.topics) != 1 or len(requested) != 1 or request.max_bytes <= 0:
        return FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST)
    [(name, partition)] = requested
    found = FetchedPartitionSnapshot(
        index=partition.partition, snapshot_id=partition.snapshot_id, position=partition.position
    )
    response = FetchSnapshotResponse(topics=[FetchedTopicSnapshot(name=name, partitions=[found])])
    if not is_metadata_log(name, b"", partition.partition):
        found.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return response
    voter = context.services.voter
    leader_id, leader_epoch = leader_of(voter)
    found.current_leader = LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
    found.error_code = leader_error(voter, partition.current_leader_epoch)
    if found.error_code or voter is None:
        endpoint = endpoint_of(leader_id, context)
        if endpoint is not None and context.version >= _FIRST_VERSION_WITH_ENDPOINTS:
            node_id, host, port = endpoint
            response.node_endpoints = [NodeEndpoint(node_id=node_id, host=host, port=port)]
        return response
    await asyncio.to_thread(_read_piece, voter.served.directory, partition, min(request.max_bytes, MOST_BYTES), found)
    return response


def _read_piece(directory: Path, requested: PartitionSnapshot, limit: int, found: FetchedPartitionSnapshot) -> None:
    """Set the part of the snapshot, or the error."""
    wanted = requested.snapshot_id
    if wanted.end_offset < 0 or wanted.epoch < 0:
        found.error_code = ErrorCode.SNAPSHOT_NOT_FOUND
        return
    try:
        with (directory / SnapshotId(wanted.end_offset, wanted.epoch).file_name).open("rb") as file:
            found.size = os.fstat(file.fileno()).st_size
            if not 0 <= requested.position < found.size:
                found.error_code = ErrorCode.POSITION_OUT_OF_RANGE
                return
            found.unaligned_records = os.pread(file.fileno(), limit, requested.position)
    except FileNotFoundError:
        found.error_code = ErrorCode.SNAPSHOT_NOT_FOUND
