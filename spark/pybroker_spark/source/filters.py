"""What a query's filters spare a batch: partitions and offsets that cannot hold a row that is wanted.

Owns the narrowing of ranges by conditions on `topic`, `partition`, `offset` and `timestamp`. Spark still judges every
row that is read, so a condition that is not understood here costs time and nothing else.
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
    """What is known of wanted rows: the AND of a query's conditions. It travels to nobody; plans use it."""

    partitions: list[Filter] = field(default_factory=list)
    """Conditions on `topic` and `partition`, which every row of a partition answers alike."""
    first: int = 0
    """No wanted row has a lower offset."""
    end: int = _BEYOND
    """Every wanted row has a lower offset."""
    since_ms: int | None = None
    """No wanted row is older. Rows in front of the first one that is not older are not read."""

    @classmethod
    def of(cls, filters: Iterable[Filter]) -> Narrowing:
        """Note down what the conditions say; those on other columns say nothing."""
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
            # A record's time is in whole milliseconds: rounded down, none that is wanted is left out.
            since_ms = int(at.timestamp() * 1000) - 1
            self.since_ms = since_ms if self.since_ms is None else max(self.since_ms, since_ms)

    def wants(self, partition: TopicPartition) -> bool:
        """Whether rows of this partition can be wanted."""
        values = {"topic": partition.topic, "partition": partition.partition}
        return all(_holds(one, values[_column(one)]) for one in self.partitions)

    def clip(self, one: OffsetRange, since: int | None) -> OffsetRange:
        """The part of a range that can hold wanted rows; `since` is the first offset that is not too old."""
        start = max(one.start, self.first, 0 if since is None else since)
        return OffsetRange(one.partition, min(start, one.end), max(min(one.end, self.end), min(start, one.end)))


def _column(one: Filter) -> str:
    path: tuple[str, ...] = getattr(one.child if isinstance(one, Not) else one, "attribute", ())
    return path[0] if len(path) == 1 else ""


def _holds(one: Filter, value: Any) -> bool:
    """Whether a condition can hold for a value; what is not understood can."""
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
    """The first offset for which a condition can hold, and the one after the last."""
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
