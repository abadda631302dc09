"""The lines of a `.snapshot` file: the producers that a log knows of.

Owns Kafka's schema of the file: `version int16, crc uint32` of what follows, `count int32`, and for each of the last
batches of each producer (ADR 0096) `id int64, epoch int16, last sequence int32, last offset int64, offset delta int32,
timestamp int64, coordinator epoch int32, first offset of the open transaction int64`.
"""

from __future__ import annotations

import struct
import sys
from typing import TYPE_CHECKING, NamedTuple

from pybroker.cli.dump_log.native import crc32c

if TYPE_CHECKING:
    from pathlib import Path

_VERSION = 1
_HEAD = struct.Struct(">hIi")
_CRC_FROM = 6
_ENTRY = struct.Struct(">qhiqiqiq")
_SEQUENCES = 2**31


def dump_producer_snapshot(path: Path) -> None:
    """Print the producers' state. Damage of the file is reported on standard error and is no failure."""
    raw = path.read_bytes()
    wrong = _damage(raw)
    if wrong is not None:
        sys.stdout.flush()
        print(wrong, file=sys.stderr)
        return
    _, _, count = _HEAD.unpack_from(raw)
    for entry in _ENTRY.iter_unpack(raw[_HEAD.size : _HEAD.size + count * _ENTRY.size]):
        print(_line(_Producer(*entry)))


def _damage(raw: bytes) -> str | None:
    """Return Kafka's message about a damaged snapshot, None for a valid one."""
    failed = "Snapshot failed schema validation:"
    if len(raw) < _HEAD.size:
        return f"{failed} null"
    version, stored, count = _HEAD.unpack_from(raw)
    if version != _VERSION:
        return f"{failed} Snapshot contained an unknown file version {version}"
    if len(raw) < _HEAD.size + count * _ENTRY.size:
        return f"{failed} null"
    computed = crc32c(raw[_CRC_FROM:])
    if computed != stored:
        return f"Snapshot is corrupt (CRC is no longer valid). Stored crc: {stored}. Computed crc: {computed}"
    return None


class _Producer(NamedTuple):
    id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    open_since: int


def _line(producer: _Producer) -> str:
    since = f"OptionalLong[{producer.open_since}]" if producer.open_since >= 0 else "OptionalLong.empty"
    line = (
        f"producerId: {producer.id} producerEpoch: {producer.epoch} coordinatorEpoch: {producer.coordinator_epoch} "
        f"currentTxnFirstOffset: {since} lastTimestamp: {producer.timestamp}"
    )
    if producer.last_offset < 0:
        return line
    return (
        f"{line} firstSequence: {(producer.last_sequence - producer.offset_delta) % _SEQUENCES} "
        f"lastSequence: {producer.last_sequence} lastOffset: {producer.last_offset} "
        f"offsetDelta: {producer.offset_delta} timestamp: {producer.timestamp}"
    )
