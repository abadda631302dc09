"""Claims about the rule of abusive callers: more than 60 requests in a minute (`spark/examples/abusive_callers.py`)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import abusive_callers
from tests.spark.micro_batches import MicroBatches

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.java

MINUTE = datetime(2017, 3, 1, 12, 0, tzinfo=UTC)
REQUESTS = "address string, timestamp timestamp"


def at(seconds: float) -> datetime:
    """A time after the full minute that all tests begin at."""
    return MINUTE + timedelta(seconds=seconds)


def request(address: str, seconds: float) -> dict[str, Any]:
    return {"address": address, "timestamp": at(seconds).isoformat()}


def spread(address: str, number: int, first: float = 0, last: float = 59.999) -> list[dict[str, Any]]:
    """So many requests from `first` to `last`, both of them included."""
    step = (last - first) / max(1, number - 1)
    return [request(address, round(first + step * one, 3)) for one in range(number)]


def found(spark: SparkSession, rows: Iterable[dict[str, Any]], **options: Any) -> list[tuple[str, float, int]]:
    """Offenders of rows that are all there: address, beginning of the window in seconds, requests."""
    pairs = [(row["address"], datetime.fromisoformat(row["timestamp"])) for row in rows]
    callers = abusive_callers.offenders(spark.createDataFrame(pairs, REQUESTS), **options)
    return sorted(
        (row["address"], (row["window_start"].astimezone(UTC) - MINUTE).total_seconds(), row["requests"])
        for row in callers.collect()
    )


def reported(batches: Iterable[list[Row]]) -> list[list[tuple[str, int]]]:
    """Address and requests of what each micro-batch reported."""
    return [sorted((row["address"], row["requests"]) for row in batch) for batch in batches]


def news(batches: list[list[Row]]) -> list[list[Row]]:
    """The micro-batches that reported something."""
    return [batch for batch in batches if batch]


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> MicroBatches:
    return MicroBatches(spark, tmp_path, REQUESTS, abusive_callers.offenders, mode="update")


def test_sixty_requests_in_a_minute_are_allowed_and_sixty_one_are_not(spark: SparkSession) -> None:
    rows = spread("10.0.0.60", 60) + spread("10.0.0.61", 61)
    assert found(spark, rows) == [("10.0.0.61", 0, 61)]


def test_a_minute_ends_before_the_full_minute(spark: SparkSession) -> None:
    before = spread("a", 61, 0, 59.999)
    across = [*spread("b", 60, 0, 59.999), request("b", 60)]
    after = spread("c", 61, 60, 119.999)
    assert found(spark, before + across + after) == [("a", 0, 61), ("c", 60, 61)]


def test_a_burst_across_two_minutes_is_judged_by_each(spark: SparkSession) -> None:
    assert found(spark, spread("a", 120, 30, 89.999)) == []
    assert found(spark, spread("a", 122, 30, 89.999)) == [("a", 0, 61), ("a", 60, 61)]


def test_an_address_is_blocked_from_its_last_request(spark: SparkSession) -> None:
    rows = [(row["address"], datetime.fromisoformat(row["timestamp"])) for row in spread("a", 61, 0, 30)]
    callers = abusive_callers.offenders(spark.createDataFrame(rows, REQUESTS))
    (record,) = abusive_callers.records(callers).collect()
    assert bytes(record["key"]) == b"a"
    assert json.loads(record["value"]) == {
        "address": "a",
        "window_start": "2017-03-01T12:00:00.000Z",
        "window_end": "2017-03-01T12:01:00.000Z",
        "requests": 61,
        "last_request": "2017-03-01T12:00:30.000Z",
        "blocked_until": "2017-03-01T12:30:30.000Z",
    }


def test_an_offender_is_reported_when_the_limit_is_passed_and_again_when_the_count_grows(stream: MicroBatches) -> None:
    batches = stream.run(
        spread("a", 60, 0, 20),
        [request("a", 21), request("b", 21)],
        [request("b", 22)],
        [request("a", 23), request("a", 24)],
    )
    assert reported(news(batches)) == [[("a", 61)], [("a", 63)]]


def test_a_late_request_counts_in_its_own_minute_until_the_watermark_has_passed_it(stream: MicroBatches) -> None:
    late = [request("a", 59)]
    batches = stream.run(
        spread("a", 60, 0, 50),
        [request("z", 119)],  # the watermark is at 59 s now: the first minute is open
        late,
        [request("z", 121)],  # at 61 s: it is over
        [request("z", 122)],  # and left out is what comes one micro-batch after that
        late,
    )
    assert reported(news(batches)) == [[("a", 61)]]


def test_final_reports_each_offender_once_when_its_minute_is_over(spark: SparkSession, tmp_path: Path) -> None:
    stream = MicroBatches(spark, tmp_path, REQUESTS, abusive_callers.offenders, mode="append")
    batches = stream.run(
        spread("a", 61, 0, 20),
        spread("a", 10, 30, 40) + spread("b", 60, 0, 50),
        [request("z", 200)],
    )
    assert reported(news(batches)) == [[("a", 71)]]


def test_counts_go_on_after_a_restart_and_a_batch_that_comes_again_reports_the_same(stream: MicroBatches) -> None:
    assert news(stream.run(spread("a", 60, 0, 20))) == []
    first = stream.run([request("a", 21)])
    assert reported(news(first)) == [[("a", 61)]]
    stream.forget(len(first))
    assert news(stream.run()) == news(first)
    assert reported(news(stream.run([request("a", 22)]))) == [[("a", 62)]]


def test_requests_are_values_or_fields_of_them(spark: SparkSession) -> None:
    time = at(5)
    rows = [
        (b" 10.0.0.1\t", time),
        (b"  ", time),
        (None, time),
    ]
    records = spark.createDataFrame(rows, "value binary, timestamp timestamp")
    assert [tuple(row) for row in abusive_callers.requests(records).collect()] == [
        ("10.0.0.1", time.replace(tzinfo=None))
    ]
    values = [
        (b'{"ip": "10.0.0.2", "at": "2017-03-01T12:00:07Z"}', time),
        (b'{"ip": "10.0.0.3", "at": "yesterday"}', time),
        (b'{"at": "2017-03-01T12:00:07Z"}', time),
        (b"no JSON", time),
    ]
    records = spark.createDataFrame(values, "value binary, timestamp timestamp")
    requests = abusive_callers.requests(records, address_field="$.ip", time_field="$.at")
    assert [tuple(row) for row in requests.collect()] == [("10.0.0.2", at(7).replace(tzinfo=None))]


ARRIVALS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 299_999).map(lambda millis: millis / 1000)), max_size=60
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arrivals=ARRIVALS, limit=st.integers(1, 4), window=st.sampled_from([10, 60]))
def test_windows_count_as_a_naive_count_does(
    spark: SparkSession, arrivals: list[tuple[str, float]], limit: int, window: int
) -> None:
    naive = Counter((address, seconds // window * window) for address, seconds in arrivals)
    expected = sorted((address, start, number) for (address, start), number in naive.items() if number > limit)
    rows = [request(address, seconds) for address, seconds in arrivals]
    assert found(spark, rows, limit=limit, window=f"{window} seconds") == expected
