"""Fetches a snapshot of the metadata log from another node, by FetchSnapshot (KIP-630).

Owns the order of the pieces, the validation of responses, and that the file gets its final name only when it is
complete and valid. Must not know which node is used, nor when. Each piece has the request timeout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pybroker.client.errors import ClientError
from pybroker.client.network.connection import Connection
from pybroker.client.settings import ConnectionSettings
from pybroker.controller.errors import SnapshotFetchError
from pybroker.controller.quorum.batches import TOPIC_NAME
from pybroker.controller.quorum.snapshot.snapshots import SnapshotWriter
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages import fetch_snapshot as wire

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from pybroker.client.security.renewed import RenewedSecurity
    from pybroker.controller.quorum.snapshot.snapshots import SnapshotId

    Elsewhere = Callable[..., Awaitable[Any]]
    """Calls a function with arguments in a thread, as `asyncio.to_thread`."""

PIECE_BYTES = 1 << 20
"""Kafka's default of controller.quorum.fetch.snapshot.max.bytes."""
MOST_BYTES = 4 << 30
"""Maximum size of a snapshot; a larger size in a response is an error."""


class SnapshotSource(msgspec.Struct, frozen=True):
    """The node to fetch from, and the identity of this node."""

    server: str
    """Host and port of a controller listener."""
    cluster_id: str
    node_id: int
    leader_epoch: int
    timeout_ms: int
    directory_id: bytes = bytes(16)
    piece_bytes: int = PIECE_BYTES
    security: RenewedSecurity | None = None
    """Security of the connection, None for plaintext."""


async def fetch_snapshot(source: SnapshotSource, snapshot: SnapshotId, directory: Path, elsewhere: Elsewhere) -> Path:
    """Fetch a snapshot into a directory, and return its path.

    Raises `SnapshotFetchError`, `MetadataLogError` for a damaged snapshot, and `OSError`; then no file is left.
    """
    try:
        return await _fetch(source, snapshot, directory, elsewhere)
    except ClientError as error:
        raise SnapshotFetchError(f"the snapshot {snapshot.file_name} cannot be fetched: {error}") from error


async def _fetch(source: SnapshotSource, snapshot: SnapshotId, directory: Path, elsewhere: Elsewhere) -> Path:
    settings = ConnectionSettings(
        {
            "client.id": f"node-{source.node_id}",
            "request.timeout.ms": str(source.timeout_ms),
            "socket.connection.setup.timeout.ms": str(source.timeout_ms),
        }
    )
    if source.security is not None:
        source.security.secure(settings)
    connection = await Connection.open(source.server, settings)
    try:
        writer = await elsewhere(SnapshotWriter, directory / snapshot.file_name)
        try:
            position, size = 0, -1
            while position != size:
                piece = await _fetch_piece(connection, source, snapshot, position)
                if size not in (-1, piece.size):
                    raise SnapshotFetchError(
                        f"{source.server}: {snapshot.file_name} changed its size from {size} to {piece.size} bytes"
                    )
                size = piece.size
                await elsewhere(writer.write, piece.unaligned_records)
                position += len(piece.unaligned_records)
            await elsewhere(writer.check, snapshot.epoch)
            path: Path = await elsewhere(writer.finish)
        finally:
            await elsewhere(writer.abandon)
    finally:
        await connection.close()
    return path


async def _fetch_piece(
    connection: Connection, source: SnapshotSource, snapshot: SnapshotId, position: int
) -> wire.FetchedPartitionSnapshot:
    partition = wire.PartitionSnapshot(
        current_leader_epoch=source.leader_epoch,
        snapshot_id=wire.SnapshotId(end_offset=snapshot.end_offset, epoch=snapshot.epoch),
        position=position,
        replica_directory_id=source.directory_id,
    )
    request = wire.FetchSnapshotRequest(
        cluster_id=source.cluster_id,
        replica_id=source.node_id,
        max_bytes=source.piece_bytes,
        topics=[wire.TopicSnapshot(name=TOPIC_NAME, partitions=[partition])],
    )
    return _piece(await connection.query(request, wire.FetchSnapshotResponse), source.server, snapshot, position)


def _piece(
    response: wire.FetchSnapshotResponse, server: str, snapshot: SnapshotId, position: int
) -> wire.FetchedPartitionSnapshot:
    """Return the piece in a response; raises `SnapshotFetchError` for an invalid response."""
    found = [one for topic in response.topics for one in topic.partitions]
    code = response.error_code or (found[0].error_code if found else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if code:
        raise SnapshotFetchError(f"{server} rejects the fetch of {snapshot.file_name} with {code_name(code)}")
    piece = found[0]
    given = (piece.snapshot_id.end_offset, piece.snapshot_id.epoch)
    if given != snapshot or piece.position != position:
        raise SnapshotFetchError(
            f"{server} returns the snapshot of offset {given[0]} and epoch {given[1]} from byte {piece.position}: "
            f"{snapshot.file_name} was requested from byte {position}"
        )
    size = len(piece.unaligned_records)
    if not size or not position + size <= piece.size <= MOST_BYTES:
        raise SnapshotFetchError(
            f"{server} returns {size} bytes at {position} of the {piece.size} bytes of {snapshot.file_name}"
        )
    return piece


def code_name(code: int) -> str:
    """Return Kafka's name of an error code, or the number of an unknown one."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error code {code}"
