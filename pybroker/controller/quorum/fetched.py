"""Fetch responses of the metadata log's leader, validated by a follower.

Owns the validation of a response: one partition, and committed batches that follow the follower's log. Must not know
connections or disks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pybroker.controller.errors import MetadataLogError
from pybroker.controller.quorum.native import parse_metadata_batches
from pybroker.controller.quorum.snapshot.snapshots import SnapshotId
from pybroker.controller.quorum.voters.control_records import kraft_versions
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pybroker.protocol.messages.fetch import FetchResponse, PartitionData


class Position(NamedTuple):
    """The end of a follower's log."""

    end_offset: int
    epoch: int
    """Leader epoch of the last batch, -1 for none."""


class FetchedBatch(msgspec.Struct, frozen=True):
    """One fetched batch."""

    last_offset: int
    epoch: int
    values: Sequence[bytes]
    """Empty for a control batch."""
    kraft_version: int | None = None
    """The level of kraft.version in the batch, None for none."""


class Leader(msgspec.Struct, frozen=True):
    """The leader, according to a response."""

    node_id: int
    epoch: int
    endpoint: tuple[str, int] | None


class Fetched(msgspec.Struct, frozen=True):
    """The content of a response: an error, a snapshot to fetch, a diverging epoch, or batches."""

    error: int
    leader: Leader | None
    high_watermark: int
    snapshot: SnapshotId | None
    diverging: Position | None
    batches: Sequence[FetchedBatch]
    raw: bytes
    """The bytes of the batches."""


def read_response(response: FetchResponse, position: Position) -> Fetched:
    """Decode a response to a follower at a position; raises `MetadataLogError` for an invalid response."""
    found = [partition for topic in response.responses for partition in topic.partitions]
    if response.error_code or len(found) != 1:
        error = response.error_code or ErrorCode.UNKNOWN_SERVER_ERROR
        return Fetched(error, None, -1, None, None, (), b"")
    [partition] = found
    leader = _leader(response, partition)
    if partition.error_code:
        return Fetched(partition.error_code, leader, -1, None, None, (), b"")
    snapshot, diverging = _snapshot(partition, position), _diverging(partition)
    if snapshot is not None or diverging is not None:
        return Fetched(0, leader, partition.high_watermark, snapshot, diverging, (), b"")
    batches, raw = _batches(partition.records or b"", position, partition)
    return Fetched(0, leader, partition.high_watermark, None, None, batches, raw)


def _leader(response: FetchResponse, partition: PartitionData) -> Leader | None:
    leader_id, epoch = partition.current_leader.leader_id, partition.current_leader.leader_epoch
    if epoch < 0:
        return None
    endpoints = [(node.host, node.port) for node in response.node_endpoints if node.node_id == leader_id]
    return Leader(leader_id, epoch, endpoints[0] if endpoints else None)


def _snapshot(partition: PartitionData, position: Position) -> SnapshotId | None:
    snapshot = SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
    if snapshot.end_offset < 0:
        return None
    if snapshot.end_offset <= position.end_offset or snapshot.epoch < position.epoch:
        raise MetadataLogError(
            f"the snapshot {snapshot.file_name} is offered to a node that has the log up to offset "
            f"{position.end_offset} in epoch {position.epoch}"
        )
    return snapshot


def _diverging(partition: PartitionData) -> Position | None:
    diverging = partition.diverging_epoch
    return Position(diverging.end_offset, diverging.epoch) if diverging.end_offset >= 0 else None


def _batches(records: bytes, position: Position, partition: PartitionData) -> tuple[list[FetchedBatch], bytes]:
    if not records:
        return [], b""
    parsed, size = parse_metadata_batches(records)
    expected, epoch = position
    levels = kraft_versions(records[:size]) if any(is_control for _, _, _, _, is_control, _ in parsed) else {}
    batches = []
    for base_offset, last_offset, batch_epoch, _, is_control, values in parsed:
        if base_offset != expected:
            raise MetadataLogError(f"fetched a batch at offset {base_offset}: expected offset {expected}")
        if batch_epoch < epoch:
            raise MetadataLogError(f"the batch at offset {base_offset} is of epoch {batch_epoch}, behind {epoch}")
        if batch_epoch > partition.current_leader.leader_epoch:
            raise MetadataLogError(f"the batch at offset {base_offset} is of epoch {batch_epoch}, ahead of its leader")
        if last_offset >= partition.high_watermark:
            raise MetadataLogError(
                f"the batch at offset {base_offset} is not committed: the high watermark is {partition.high_watermark}"
            )
        expected, epoch = last_offset + 1, batch_epoch
        level = levels.get(last_offset)
        batches.append(FetchedBatch(last_offset, batch_epoch, () if is_control else values, level))
    return batches, records[:size]
