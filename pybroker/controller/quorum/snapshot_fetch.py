"""Fetching a snapshot of the metadata log from another node, piece by piece (FetchSnapshot, KIP-630).

Owns the questions, what an answer has to be, and that a snapshot gets its name only when all of it is there and right.
Must not know who asks for it, nor how a connection is found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from pybroker.controller.errors import SnapshotFetchError
from pybroker.controller.quorum.batches import TOPIC_NAME
from pybroker.controller.quorum.snapshots import SnapshotWriter
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    PartitionSnapshot,
    TopicSnapshot,
)
from pybroker.protocol.messages.fetch_snapshot import SnapshotId as WireSnapshotId
from pybroker.protocol.schema import Message

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from pybroker.controller.quorum.snapshots import SnapshotId
    from pybroker.protocol.messages.fetch_snapshot import FetchedPartitionSnapshot

    Elsewhere = Callable[..., Awaitable[Any]]

Response = TypeVar("Response", bound=Message)


class Asked(Protocol):
    """A connection to the node that has the snapshot."""

    async def ask(self, request: Message, response: type[Response], *, timeout_ms: int) -> Response:
        """Return the answer to a request."""


class Asking(NamedTuple):
    """Who fetches, and how."""

    cluster_id: str
    node_id: int
    directory_id: bytes
    max_bytes: int
    """Of one piece (`controller.quorum.fetch.snapshot.max.bytes`)."""
    timeout_ms: int
    """For one piece."""


async def fetch_snapshot(
    source: Asked, asking: Asking, directory: Path, snapshot: SnapshotId, leader_epoch: int, elsewhere: Elsewhere
) -> Path:
    """Fetch a snapshot into `directory`, and return where it is; `elsewhere` calls a function in a thread.

    Raises `SnapshotFetchError`, `MetadataLogError` for one that is damaged, `OSError`, and what `source` raises; nothing
    of it stays then.
    """
    writer = await elsewhere(SnapshotWriter, directory / snapshot.file_name)
    try:
        position, size = 0, -1
        while position != size:
            piece = await _ask(source, asking, snapshot, leader_epoch, position)
            if size not in (-1, piece.size):
                raise SnapshotFetchError(f"the snapshot {snapshot.file_name} had {size} bytes and now has {piece.size}")
            size = piece.size
            await elsewhere(writer.write, piece.unaligned_records)
            position += len(piece.unaligned_records)
        await elsewhere(writer.check, snapshot.epoch)
        path: Path = await elsewhere(writer.finish)
    finally:
        await elsewhere(writer.abandon)
    return path


async def _ask(
    source: Asked, asking: Asking, snapshot: SnapshotId, leader_epoch: int, position: int
) -> FetchedPartitionSnapshot:
    request = FetchSnapshotRequest(
        cluster_id=asking.cluster_id,
        replica_id=asking.node_id,
        max_bytes=asking.max_bytes,
        topics=[
            TopicSnapshot(
                name=TOPIC_NAME,
                partitions=[
                    PartitionSnapshot(
                        current_leader_epoch=leader_epoch,
                        snapshot_id=WireSnapshotId(end_offset=snapshot.end_offset, epoch=snapshot.epoch),
                        position=position,
                        replica_directory_id=asking.directory_id,
                    )
                ],
            )
        ],
    )
    answer = await source.ask(request, FetchSnapshotResponse, timeout_ms=asking.timeout_ms)
    return _piece(answer, snapshot, position)


def _piece(answer: FetchSnapshotResponse, snapshot: SnapshotId, position: int) -> FetchedPartitionSnapshot:
    """Return the piece in an answer; raises `SnapshotFetchError` for what is none."""
    partitions = [partition for topic in answer.topics for partition in topic.partitions]
    code = answer.error_code or (partitions[0].error_code if partitions else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if code:
        raise SnapshotFetchError(f"the snapshot {snapshot.file_name} is refused: {_name(code)}")
    piece = partitions[0]
    there = (piece.snapshot_id.end_offset, piece.snapshot_id.epoch)
    if there != tuple(snapshot) or piece.position != position:
        raise SnapshotFetchError(
            f"asked for the snapshot {snapshot.file_name} from byte {position} on, and got that of offset {there[0]} "
            f"and epoch {there[1]} from byte {piece.position} on"
        )
    end = position + len(piece.unaligned_records)
    if not position < end <= piece.size:
        raise SnapshotFetchError(
            f"the snapshot {snapshot.file_name} has {piece.size} bytes, and {len(piece.unaligned_records)} of them "
            f"came from byte {position} on"
        )
    return piece


def _name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error code {code}"
