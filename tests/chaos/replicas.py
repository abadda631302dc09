"""Logs of one partition in several directories, compared batch by batch.

Reads the files of brokers that do not run. Owns nothing; knows no more of a batch than its first two fields.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

_HEAD = struct.Struct(">qi")


def batches(directory: Path) -> Iterator[tuple[int, bytes]]:
    """Return base offset and bytes of each batch of a partition, in the order of its segments."""
    for segment in sorted(directory.glob("*.log")):
        data = segment.read_bytes()
        at = 0
        while at + _HEAD.size <= len(data):
            offset, length = _HEAD.unpack_from(data, at)
            end = at + _HEAD.size + length
            if length <= 0 or end > len(data):
                break
            yield offset, data[at:end]
            at = end


def differences(replicas: Mapping[int, Path]) -> list[str]:
    """Return what differs between the replicas of a partition, which are directories by broker."""
    logs = {broker: dict(batches(directory)) for broker, directory in replicas.items()}
    begins = {broker: min(log) for broker, log in logs.items() if log}
    if not begins:
        return []
    if len(begins) < len(logs):
        return [f"brokers {sorted(set(logs) - set(begins))} have an empty log, {sorted(begins)} have records"]
    # What is below the latest beginning may have been removed by one broker before another.
    begin = max(begins.values())
    compared = {
        broker: {offset: batch for offset, batch in log.items() if offset >= begin} for broker, log in logs.items()
    }
    first, *others = sorted(compared)
    return [found for other in others for found in _differ(first, compared[first], other, compared[other])]


def _differ(one: int, ones: Mapping[int, bytes], other: int, others: Mapping[int, bytes]) -> Iterator[str]:
    for offset in sorted(ones.keys() | others.keys()):
        if ones.get(offset) != others.get(offset):
            yield (
                f"the batch at offset {offset} is {_shown(ones.get(offset))} on broker {one} "
                f"and {_shown(others.get(offset))} on broker {other}"
            )
            return


def _shown(batch: bytes | None) -> str:
    if batch is None:
        return "missing"
    return f"{len(batch)} bytes, {batch[:61].hex()}"
