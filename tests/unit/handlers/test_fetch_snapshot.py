"""FetchSnapshot: every byte of a snapshot, from its leader alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pybroker.config.quorum import QuorumVoter
from pybroker.controller.quorum.snapshot.snapshots import newest_snapshot
from pybroker.handlers.registry import registered_apis
from pybroker.protocol.codec import decode, encode
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages.fetch_snapshot import (
    FetchedPartitionSnapshot,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    PartitionSnapshot,
    SnapshotId,
    TopicSnapshot,
)
from tests.support.controllers import Running, running
from tests.support.metadata_leader import context_of

API = registered_apis(ListenerRole.CONTROLLER)[59]


def querying(
    snapshot: tuple[int, int], position: int = 0, max_bytes: int = 100, **changes: Any
) -> FetchSnapshotRequest:
    partition = PartitionSnapshot(
        partition=changes.pop("partition", 0),
        current_leader_epoch=changes.pop("epoch", -1),
        snapshot_id=SnapshotId(end_offset=snapshot[0], epoch=snapshot[1]),
        position=position,
    )
    topic = TopicSnapshot(name=changes.pop("name", "__cluster_metadata"), partitions=[partition])
    return FetchSnapshotRequest(**{"cluster_id": "c", "max_bytes": max_bytes, "topics": [topic], **changes})


async def responded(request: FetchSnapshotRequest, leader: Running | None) -> FetchSnapshotResponse:
    response = await API.handle(request, context_of(None if leader is None else leader.controller))
    assert isinstance(response, FetchSnapshotResponse)
    return response


async def found(request: FetchSnapshotRequest, leader: Running | None) -> FetchedPartitionSnapshot:
    return (await responded(request, leader)).topics[0].partitions[0]


async def taken(leader: Running) -> tuple[int, int, bytes]:
    """A snapshot of what the controller has: its id and its bytes."""
    controller = leader.controller
    await controller._take_snapshot(controller.image, 1)
    snapshot = newest_snapshot(controller.served.directory)
    assert snapshot is not None
    return *snapshot.id, snapshot.path.read_bytes()


async def test_the_pieces_are_the_file(tmp_path: Path) -> None:
    async with running(tmp_path) as leader:
        end_offset, epoch, content = await taken(leader)
        read = b""
        while len(read) < len(content):
            piece = await found(querying((end_offset, epoch), len(read)), leader)
            assert (piece.error_code, piece.position, piece.size) == (0, len(read), len(content))
            assert 0 < len(piece.unaligned_records) <= 100
            read += piece.unaligned_records
        assert read == content


async def test_what_is_not_there_and_where_it_is_not(tmp_path: Path) -> None:
    async with running(tmp_path) as leader:
        end_offset, epoch, content = await taken(leader)
        for snapshot in ((end_offset + 1, epoch), (end_offset, epoch + 1), (-1, 0), (0, -1), (1 << 62, 1)):
            assert (await found(querying(snapshot), leader)).error_code == ErrorCode.SNAPSHOT_NOT_FOUND
        for position in (-1, len(content), 1 << 62, -(1 << 63)):
            piece = await found(querying((end_offset, epoch), position), leader)
            assert (piece.error_code, piece.unaligned_records) == (ErrorCode.POSITION_OUT_OF_RANGE, b"")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"topics": []}, ErrorCode.INVALID_REQUEST),
        ({"max_bytes": 0}, ErrorCode.INVALID_REQUEST),
    ],
)
async def test_a_request_for_anything_else_is_refused_whole(
    tmp_path: Path, changes: dict[str, Any], code: ErrorCode
) -> None:
    async with running(tmp_path) as leader:
        assert (await responded(querying((1, 1), **changes), leader)).error_code == code


async def test_another_partition_or_epoch_is_an_error_of_the_partition(tmp_path: Path) -> None:
    async with running(tmp_path) as leader:
        for changes, code in (
            ({"name": "t"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ({"partition": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ({"epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
            ({"epoch": 2}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ):
            assert (await found(querying((1, 1), **changes), leader)).error_code == code
    assert (await found(querying((1, 1)), None)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("version", [0, 1])
async def test_every_version_has_room_for_the_answer_of_who_does_not_lead(tmp_path: Path, version: int) -> None:
    async with running(tmp_path) as leader:
        context = context_of(leader.controller, (QuorumVoter(1, "one", 9093),), version)
        response = await API.handle(querying((1, 1), epoch=0), context)
        assert bool(response.node_endpoints) == (version >= 1)
        decoded, _ = decode(FetchSnapshotResponse, encode(response, version), version)
        assert decoded.topics[0].partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH
