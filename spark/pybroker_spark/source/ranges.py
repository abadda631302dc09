"""Ranges of offsets: their split into tasks, and the size of a micro-batch.

Arithmetic only, by the rules of Spark's Kafka connector. With s the sizes of all ranges and m `minPartitions`, a
range of size r is split into max(1, round(r / sum(s) * m)) pieces. Of a limit L, a partition with r available
records gets L * r / sum(r), rounded down, and at least one record.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pybroker.client import TopicPartition
from pybroker_spark.source.offsets import Offsets


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The offsets from `start` up to, not including, `end` of one partition. Some offsets may have no record."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        """Return the number of offsets."""
        return self.end - self.start

    def __str__(self) -> str:
        return f"topic {self.partition.topic!r} partition {self.partition.partition} offsets {self.start} to {self.end}"


def split(
    ranges: Sequence[OffsetRange], *, min_partitions: int | None = None, max_records: int | None = None
) -> list[OffsetRange]:
    """Split ranges into the pieces that tasks read, one task a piece. Empty pieces are omitted.

    Without `min_partitions` and `max_records` one task reads one partition of a topic.
    """
    pieces = [one for one in ranges if one.size > 0]
    if max_records is not None:
        pieces = [piece for one in pieces for piece in _cut(one, math.ceil(one.size / max_records))]
    if min_partitions is None or len(pieces) >= min_partitions:
        return pieces
    total = sum(one.size for one in pieces)
    whole = {one for one in pieces if _parts(one.size, total, min_partitions) == 1}
    rest = total - sum(one.size for one in whole)
    wanted = max(min_partitions - len(whole), 1)
    return [
        piece
        for one in pieces
        for piece in _cut(one, 1 if one in whole else _parts(one.size, rest, wanted))
        if piece.size > 0
    ]


def _parts(size: int, total: int, wanted: int) -> int:
    return max(math.floor(size / total * wanted + 0.5), 1)


def _cut(one: OffsetRange, parts: int) -> list[OffsetRange]:
    """Split a range into `parts` equal pieces. If the size does not divide evenly, the last pieces are larger."""
    pieces, start, remaining = [], one.start, one.size
    for part in range(parts):
        size = remaining // (parts - part)
        remaining -= size
        pieces.append(OffsetRange(one.partition, start, start + size))
        start += size
    return pieces


def limit_rows(limit: int, start: Offsets, end: Offsets) -> Offsets:
    """Return the end of a micro-batch of about `limit` records, shared by the partitions' available records.

    `start` has every partition of `end`. Partitions with few available records are not starved.
    """
    return limit_shares(limit, start, end, {})


def limit_shares(limit: float, start: Offsets, end: Offsets, row_cost: Mapping[TopicPartition, float]) -> Offsets:
    """Do the same as `limit_rows`, where a record of a partition uses `row_cost` (default 1) of the limit."""
    waiting = {partition: last - start[partition] for partition, last in end.items() if last > start[partition]}
    total = sum(size * row_cost.get(partition, 1.0) for partition, size in waiting.items())
    if total <= limit:
        return dict(end)
    limited = dict(end)
    for partition, size in waiting.items():
        share = limit * (size / total)
        rows = math.ceil(share) if share < 1 else math.floor(share)
        limited[partition] = min(end[partition], start[partition] + max(rows, 1))
    return limited
