"""Fetching a snapshot of the metadata log from another node, by FetchSnapshot (KIP-630).

Owns the pieces and their order. The file gets its name when it is whole and on the device; whoever reads it checks what
is in it. Must not know who is asked, nor when. Every piece is awaited for as long as a request may take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pybroker.client.connection import Connection
from pybroker.client.errors import ClientError
from pybroker.client.settings import ConnectionSettings
from pybroker.controller.errors import MetadataLogError
from pybroker.controller.quorum.snapshots import SnapshotWriter
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages import fetch_snapshot as wire

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from pybroker.controller.quorum.snapshots import SnapshotId

    Elsewhere = Callable[..., Awaitable[Any]]
    """Calls a function with arguments in a thread, as `asyncio.to_thread`."""

_METADATA = "__cluster_metadata"
PIECE_BYTES = 1 << 20
MOST_BYTES = 4 << 30
"""No snapshot is larger; a leader that says so is not believed."""


class SnapshotSource(NamedTuple):
    """Whom to ask, and as whom."""

    server: str
    """Host and port of a controller listener."""
    cluster_id: str
    node_id: int
    leader_epoch: int
    timeout_ms: int


async def fetch_snapshot(source: SnapshotSource, snapshot: SnapshotId, directory: Path, elsewhere: Elsewhere) -> Path:
    """Get a snapshot into a directory; raises `OSError` and `MetadataLogError`."""
    try:
        return await _fetch(source, snapshot, directory, elsewhere)
    except ClientError as error:
        raise MetadataLogError(f"the snapshot {snapshot.file_name} cannot be fetched: {error}") from error


async def _fetch(source: SnapshotSource, snapshot: SnapshotId, directory: Path, elsewhere: Elsewhere) -> Path:
    settings = ConnectionSettings(
        {
            "client.id": f"voter-{source.node_id}",
            "request.timeout.ms": str(source.timeout_ms),
            "socket.connection.setup.timeout.ms": str(source.timeout_ms),
        }
    )
    connection = await Connection.open(source.server, settings)
    try:
        writer = await elsewhere(SnapshotWriter, directory / snapshot.file_name)
        try:
            position, size = 0, 1
            while position < size:
                piece, size = await _fetch_piece(connection, source, snapshot, position)
                await elsewhere(writer.write, piece)
                position += len(piece)
            path: Path = await elsewhere(writer.finish)
        finally:
            await elsewhere(writer.abandon)
    finally:
        await connection.close()
    return path


async def _fetch_piece(
    connection: Connection, source: SnapshotSource, snapshot: SnapshotId, position: int
) -> tuple[bytes, int]:
    """Return the bytes at a position, and the size of the file."""
    partition = wire.PartitionSnapshot(
        current_leader_epoch=source.leader_epoch,
        snapshot_id=wire.SnapshotId(end_offset=snapshot.end_offset, epoch=snapshot.epoch),
        position=position,
    )
    request = wire.FetchSnapshotRequest(
        cluster_id=source.cluster_id,
        replica_id=source.node_id,
        max_bytes=PIECE_BYTES,
        topics=[wire.TopicSnapshot(name=_METADATA, partitions=[partition])],
    )
    answer = await connection.ask(request, wire.FetchSnapshotResponse)
    found = [one for topic in answer.topics for one in topic.partitions]
    code = answer.error_code or (found[0].error_code if found else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if code:
        raise MetadataLogError(f"{source.server} refuses {snapshot.file_name} with {ErrorCode(code).name}")
    piece, size = bytes(found[0].unaligned_records), found[0].size
    if found[0].position != position or not piece or not position + len(piece) <= size <= MOST_BYTES:
        raise MetadataLogError(
            f"{source.server} returns {len(piece)} bytes at {found[0].position} of {size}, and {position} was asked for"
        )
    return piece, size
