"""Word count: the words in the values of a topic, counted continuously.

    lines (topic) -> words -> count by word -> counts by word (topic)

The example of chapter 10.2 of the book this repository began with, which splits at blanks (its listing splits at
tabs, which its file does not have), with the comma and the lower case of its chapter 7.3.4 as options. A word's
newest record has its current count, so a compacted topic is the table of counts.

Owns the logic. Must not know how records are transferred.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf

from pybroker_spark.pipelines import job, kinds, streams, topics

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import DataFrame, SparkSession

DESCRIPTION = "Count the words in the values of topics."

SEPARATOR: Final = r"\s+"


def words(lines: DataFrame, *, separator: str = SEPARATOR, fold_case: bool = False) -> DataFrame:
    """Return the words of `value`, one a row, as (word). Blank text between separators is no word."""
    text = sf.col("value").cast("string")
    each = sf.explode(sf.split(sf.lower(text) if fold_case else text, separator))
    return lines.select(each.alias("word")).select(sf.trim("word").alias("word")).where(sf.col("word") != "")


def word_counts(words: DataFrame) -> DataFrame:
    """Return the number of occurrences of each word, as (word, count)."""
    return words.groupBy("word").agg(sf.count(sf.lit(1)).alias("count"))


def records(counts: DataFrame) -> DataFrame:
    """Return counts as records: the word as key, the count in decimal as value."""
    return counts.select(
        sf.col("word").cast("binary").alias("key"), sf.col("count").cast("string").cast("binary").alias("value")
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    topics.add_source(parser)
    topics.add_target(parser, default="word-counts")
    streams.add_arguments(parser)
    parser.add_argument(
        "--separator",
        type=kinds.pattern,
        default=SEPARATOR,
        metavar="REGEX",
        help="what stands between words (default: blanks)",
    )
    parser.add_argument("--fold-case", action="store_true", help="count Kafka and kafka as one word")


def run(spark: SparkSession, arguments: argparse.Namespace) -> str:
    """Run the query between its topics, and return the text to print."""
    lines = topics.read_stream(spark, arguments, "value")
    found = words(lines, separator=arguments.separator, fold_case=arguments.fold_case)
    writer = topics.write_updates(records(word_counts(found)), arguments, arguments.topic)
    ended = streams.run(writer, arguments)
    return f"{ended.rows_read:,} records read, counts written to topic '{arguments.topic}'"


JOB: Final = job.Job("word-count", DESCRIPTION, add_arguments, run)

if __name__ == "__main__":
    sys.exit(job.main(JOB))
