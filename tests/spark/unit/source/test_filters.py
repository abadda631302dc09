"""Claims about `pybroker_spark.source.filters`."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from pybroker.client import TopicPartition
from pybroker_spark.source.filters import Narrowing
from pybroker_spark.source.ranges import OffsetRange

TOPIC, PARTITION, OFFSET, TIME = ("topic",), ("partition",), ("offset",), ("timestamp",)


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ([EqualTo(PARTITION, 1)], [1]),
        ([In(PARTITION, (0, 2, 9))], [0, 2]),
        ([Not(EqualTo(PARTITION, 1))], [0, 2]),
        ([Not(In(PARTITION, (0, 1)))], [2]),
        ([GreaterThan(PARTITION, 0), LessThanOrEqual(PARTITION, 1)], [1]),
        ([GreaterThanOrEqual(PARTITION, 1), LessThan(PARTITION, 2)], [1]),
        ([EqualTo(TOPIC, "orders")], [0, 1, 2]),
        ([EqualTo(TOPIC, "users")], []),
        ([StringStartsWith(TOPIC, "use"), IsNull(PARTITION)], [0, 1, 2]),
        ([EqualTo(("value",), b"x"), EqualTo(("headers", "key"), "partition")], [0, 1, 2]),
    ],
)
def test_conditions_on_topic_and_partition_spare_whole_partitions(filters: list[Filter], wanted: list[int]) -> None:
    narrowing = Narrowing.of(filters)
    assert [index for index in range(3) if narrowing.wants(TopicPartition("orders", index))] == wanted


@pytest.mark.parametrize(
    ("filters", "start", "end"),
    [
        ([EqualTo(OFFSET, 15)], 15, 16),
        ([In(OFFSET, (17, 12))], 12, 18),
        ([GreaterThan(OFFSET, 12), LessThan(OFFSET, 15)], 13, 15),
        ([GreaterThanOrEqual(OFFSET, 12), LessThanOrEqual(OFFSET, 15)], 12, 16),
        ([Not(EqualTo(OFFSET, 15))], 10, 20),
        ([GreaterThan(OFFSET, 50)], 20, 20),
        ([LessThan(OFFSET, 5)], 10, 10),
    ],
)
def test_conditions_on_offsets_clip_a_range(filters: list[Filter], start: int, end: int) -> None:
    clipped = Narrowing.of(filters).clip(OffsetRange(TopicPartition("orders", 0), 10, 20), None)
    assert (clipped.start, clipped.end) == (start, end)


def test_only_a_lower_bound_of_times_spares_anything() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    assert Narrowing.of([LessThan(TIME, at)]).since_ms is None
    assert Narrowing.of([GreaterThan(TIME, at)]).since_ms == at.timestamp() * 1000 - 1
    partition = OffsetRange(TopicPartition("orders", 0), 10, 20)
    assert Narrowing.of([GreaterThan(TIME, at)]).clip(partition, 14).start == 14
