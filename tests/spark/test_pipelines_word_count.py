"""Claims about the word count (`pipelines.word_count`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pybroker_spark.pipelines import word_count
from tests.spark.micro_batches import MicroBatches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.java

BOOK = b"hello world hello kafka hello hello spark hadoop kafka spark"


def counted(spark: SparkSession, *values: bytes | None, **options: Any) -> dict[str, int]:
    lines = spark.createDataFrame([(value,) for value in values], "value binary")
    return {row["word"]: row["count"] for row in word_count.word_counts(word_count.words(lines, **options)).collect()}


def test_the_words_of_the_book_are_counted_as_it_prints_them(spark: SparkSession) -> None:
    assert counted(spark, BOOK) == {"hello": 4, "world": 1, "kafka": 2, "spark": 2, "hadoop": 1}


def test_blanks_of_any_kind_separate_and_are_no_words(spark: SparkSession) -> None:
    assert counted(spark, b"  kafka\t\tspark \r\n", b"", b" \t ", None) == {"kafka": 1, "spark": 1}


def test_another_separator_and_one_case(spark: SparkSession) -> None:
    values = (b"Kafka,kafka, KAFKA ,,", "热搜,Été".encode())
    assert counted(spark, *values, separator=",", fold_case=True) == {"kafka": 3, "热搜": 1, "été": 1}
    assert counted(spark, values[0], separator=",") == {"Kafka": 1, "kafka": 1, "KAFKA": 1}


def test_a_stream_emits_the_counts_that_have_changed(spark: SparkSession, tmp_path: Path) -> None:
    def rule(lines: Any) -> Any:
        return word_count.records(word_count.word_counts(word_count.words(lines)))

    stream = MicroBatches(spark, tmp_path, "value string", rule, mode="update")
    batches = stream.run([{"value": "kafka spark"}, {"value": "kafka"}], [{"value": "kafka"}], [{"value": " "}])
    assert [{bytes(row["key"]): bytes(row["value"]) for row in batch} for batch in batches] == [
        {b"kafka": b"2", b"spark": b"1"},
        {b"kafka": b"3"},
        {},
    ]
