"""Claims about hot words: the first ten of each five minutes (`spark/examples/hot_words.py`)."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from examples import hot_words
from tests.spark.micro_batches import MicroBatches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.java

NOON = datetime(2017, 3, 1, 12, 0, tzinfo=UTC)
SEARCHES = "word string, timestamp timestamp"


def search(word: str, seconds: float) -> dict[str, Any]:
    return {"word": word, "timestamp": (NOON + timedelta(seconds=seconds)).isoformat()}


def ranking(row: Any) -> list[tuple[int, str, int]]:
    return [(one["rank"], one["word"], one["count"]) for one in row["words"]]


def test_words_are_ranked_by_their_counts_and_equal_counts_by_the_word(spark: SparkSession) -> None:
    counts = {"kafka": 5, "spark": 7, "zookeeper": 1, "apache": 1, "热搜": 5, "flume": 2, "hdfs": 3}
    counts |= {f"word{number:02}": 1 for number in range(20)}
    rows = [(word, NOON + timedelta(seconds=one)) for word, times in counts.items() for one in range(times)]
    (row,) = hot_words.hot_words(spark.createDataFrame(rows, SEARCHES)).collect()
    expected = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0].encode()))[:10]
    assert ranking(row) == [(rank, word, count) for rank, (word, count) in enumerate(expected, 1)]
    assert [word for _, word, _ in ranking(row)][:3] == ["spark", "kafka", "热搜"]


def test_a_window_is_five_minutes_from_a_full_five_minutes(spark: SparkSession) -> None:
    times = [0, 299.999, 300, 599.999, 600]
    rows = [("kafka", NOON + timedelta(seconds=seconds)) for seconds in times]
    found = hot_words.hot_words(spark.createDataFrame(rows, SEARCHES)).orderBy("window_start").collect()
    starts = [(row["window_start"].replace(tzinfo=UTC) - NOON).total_seconds() for row in found]
    assert starts == [0, 300, 600]
    assert [ranking(row) for row in found] == [[(1, "kafka", 2)], [(1, "kafka", 2)], [(1, "kafka", 1)]]


def test_windows_that_slide_count_a_search_in_each(spark: SparkSession) -> None:
    rows = [("kafka", NOON + timedelta(seconds=seconds)) for seconds in (30, 90, 150)]
    rankings = hot_words.hot_words(spark.createDataFrame(rows, SEARCHES), window="2 minutes", slide="1 minute")
    naive = Counter(
        start for _, time in rows for start in range(-60, 180, 60) if 0 <= (time - NOON).total_seconds() - start < 120
    )
    found = {
        (row["window_start"].replace(tzinfo=UTC) - NOON).total_seconds(): ranking(row)[0][2]
        for row in rankings.collect()
    }
    assert found == dict(naive)


def test_blank_searches_do_not_count(spark: SparkSession) -> None:
    values = [(value, NOON) for value in (b" kafka ", b"kafka\r", b"   ", b"", None, b"Kafka")]
    searches = hot_words.searches(spark.createDataFrame(values, "value binary, timestamp timestamp"))
    assert sorted(row["word"] for row in searches.collect()) == ["Kafka", "kafka", "kafka"]


def test_a_window_is_emitted_once_when_it_is_over_with_what_came_late_but_in_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    stream = MicroBatches(spark, tmp_path, SEARCHES, hot_words.hot_words)
    batches = stream.run(
        [search("kafka", 10), search("spark", 20), search("kafka", 30)],
        [search("flume", 310)],  # the watermark is at 250 s
        [search("spark", 40), search("spark", 299)],  # late, and in time
        [search("hdfs", 370)],  # at 310 s: the first window is over
        [search("hdfs", 371)],  # and left out is what comes one micro-batch after that
        [search("kafka", 50)],
        [search("end", 800)],
    )
    emitted = [(row["window_start"].replace(tzinfo=UTC), ranking(row)) for batch in batches for row in batch]
    assert emitted == [
        (NOON, [(1, "spark", 3), (2, "kafka", 2)]),
        (NOON + timedelta(minutes=5), [(1, "hdfs", 2), (2, "flume", 1)]),
    ]


def test_a_ranking_is_a_record_by_its_window(spark: SparkSession) -> None:
    rows = [("kafka", NOON), ("kafka", NOON), ("spark", NOON)]
    (record,) = hot_words.records(hot_words.hot_words(spark.createDataFrame(rows, SEARCHES))).collect()
    assert bytes(record["key"]) == b"2017-03-01T12:00:00.000Z"
    assert json.loads(record["value"]) == {
        "window_start": "2017-03-01T12:00:00.000Z",
        "window_end": "2017-03-01T12:05:00.000Z",
        "words": [{"rank": 1, "word": "kafka", "count": 2}, {"rank": 2, "word": "spark", "count": 1}],
    }
