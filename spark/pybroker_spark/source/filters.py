"""Filter pushdown for a batch: excludes partitions and offsets that cannot contain matching rows.

Owns the narrowing of ranges by conditions on `topic`, `partition`, `offset` and `timestamp`. Spark still filters
every row that is read, so an unsupported condition only costs time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    Not,
)

from pybroker.client import TopicPartition
from pybroker_spark.source.ranges import OffsetRange

_BEYOND = 1 << 63


@dataclass(slots=True)
class Narrowing:
    """The known bounds of matching rows: the AND of a query's conditions. Used for planning on the driver only."""

    partitions: list[Filter] = field(default_factory=list)
    """Conditions on `topic` and `partition`, which are equal for all rows of a partition."""
    first: int = 0
    """No matching row has a lower offset."""
    end: int = _BEYOND
    """Every matching row has a lower offset."""
    since_ms: int | None = None
    """No matching row is older. Rows before the first one that is not older are not read."""

    @classmethod
    def of(cls, filters: Iterable[Filter]) -> Narrowing:
        """Build the bounds from conditions; those on other columns are ignored."""
        narrowing = cls()
        for one in filters:
            column = _column(one)
            if column in ("topic", "partition"):
                narrowing.partitions.append(one)
            elif column == "offset":
                first, end = _bounds(one)
                narrowing.first, narrowing.end = max(narrowing.first, first), min(narrowing.end, end)
            elif column == "timestamp":
                narrowing._since(one)
        return narrowing

    def _since(self, one: Filter) -> None:
        if isinstance(one, (EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual)) and isinstance(
            one.value, datetime
        ):
            at = one.value if one.value.tzinfo is not None else one.value.replace(tzinfo=UTC)
            # A record's timestamp has milliseconds. Rounding down excludes no matching record.
            since_ms = int(at.timestamp() * 1000) - 1
            self.since_ms = since_ms if self.since_ms is None else max(self.since_ms, since_ms)

    def wants(self, partition: TopicPartition) -> bool:
        """Whether this partition may contain matching rows."""
        values = {"topic": partition.topic, "partition": partition.partition}
        return all(_holds(one, values[_column(one)]) for one in self.partitions)

    def clip(self, one: OffsetRange, since: int | None) -> OffsetRange:
        """Return the part of a range that may contain matching rows; `since` is the first offset not too old."""
        start = max(one.start, self.first, 0 if since is None else since)
        return OffsetRange(one.partition, min(start, one.end), max(min(one.end, self.end), min(start, one.end)))


def _column(one: Filter) -> str:
    path: tuple[str, ...] = getattr(one.child if isinstance(one, Not) else one, "attribute", ())
    return path[0] if len(path) == 1 else ""


def _holds(one: Filter, value: Any) -> bool:
    """Whether a condition may be true for a value; an unsupported condition may."""
    match one:
        case Not(child=EqualTo(value=other) | EqualNullSafe(value=other)):
            return bool(value != other)
        case Not(child=In(value=others)):
            return value not in others
        case EqualTo(value=other) | EqualNullSafe(value=other):
            return bool(value == other)
        case In(value=others):
            return value in others
        case GreaterThan(value=other):
            return bool(value > other)
        case GreaterThanOrEqual(value=other):
            return bool(value >= other)
        case LessThan(value=other):
            return bool(value < other)
        case LessThanOrEqual(value=other):
            return bool(value <= other)
    return True


def _bounds(one: Filter) -> tuple[int, int]:
    """Return the first offset for which a condition may be true, and the one after the last."""
    match one:
        case EqualTo(value=int(value)) | EqualNullSafe(value=int(value)):
            return value, value + 1
        case In(value=values) if values and all(isinstance(value, int) for value in values):
            return min(values), max(values) + 1
        case GreaterThan(value=int(value)):
            return value + 1, _BEYOND
        case GreaterThanOrEqual(value=int(value)):
            return value, _BEYOND
        case LessThan(value=int(value)):
            return 0, value
        case LessThanOrEqual(value=int(value)):
            return 0, value + 1
    return 0, _BEYOND
