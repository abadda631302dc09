"""Hot words: the words that were searched for most in each five minutes.

    searches (topic) -> count by window and word -> the first ten of each window -> rankings (topic)

The example of chapter 10.4 of the book this repository began with: the value is what was searched for, blanks around
it and empty searches do not count, windows of five minutes follow one another, the first ten are reported. The words
are ranked by their counts, as its text says; its listing sorts by the words themselves before it takes ten. Equal
counts are ranked by the word, and windows are those of the searches' own time, so that a replay gives the same.

Owns the rule. Must not know how records travel.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf

from pybroker_spark.pipelines import job, kinds, streams, topics
from pybroker_spark.pipelines.errors import UsageError

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import DataFrame, SparkSession

DESCRIPTION = "Rank the words that were searched for most in each window of time."

TOP: Final = 10
WINDOW: Final = "5 minutes"
LATENESS: Final = "1 minute"
BLANKS: Final = " \t\r\n"


def searches(records: DataFrame) -> DataFrame:
    """Records of a topic as (word, timestamp)."""
    word = sf.trim(sf.col("value").cast("string"), sf.lit(BLANKS))
    return records.select(word.alias("word"), "timestamp").where(sf.col("word") != "")


def hot_words(
    searches: DataFrame, *, top: int = TOP, window: str = WINDOW, slide: str | None = None, lateness: str = LATENESS
) -> DataFrame:
    """The `top` words of each window of (word, timestamp), as (window_start, window_end, words).

    `words` is an array of (rank, word, count), the most frequent first. As a stream a window is emitted once, when
    searches have come that are `lateness` past its end.
    """
    counted = (
        searches.withWatermark("timestamp", lateness)
        .groupBy(sf.window("timestamp", window, slide or window), "word")
        .agg(sf.count(sf.lit(1)).alias("count"))
    )
    # Of each window only the first words are kept at any time, however many there are.
    first = sf.min_by(sf.struct("word", "count"), sf.struct(-sf.col("count"), sf.col("word")), top)
    ranked = sf.transform(
        sf.col("first"),
        lambda one, place: sf.struct((place + 1).alias("rank"), one["word"].alias("word"), one["count"].alias("count")),
    )
    start, end = sf.col("window.start"), sf.col("window.end")
    windows = counted.groupBy("window").agg(first.alias("first"))
    return windows.select(start.alias("window_start"), end.alias("window_end"), ranked.alias("words"))


def records(rankings: DataFrame) -> DataFrame:
    """Rankings as records by the beginning of their window."""
    value = sf.to_json(sf.struct(*rankings.columns))
    key = sf.date_format("window_start", "yyyy-MM-dd'T'HH:mm:ss.SSSXXX")
    return rankings.select(key.cast("binary").alias("key"), value.cast("binary").alias("value"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    topics.add_source(parser, default="words-search")
    topics.add_target(parser, default="hot-words")
    streams.add_arguments(parser)
    parser.add_argument(
        "--top", type=kinds.count, default=TOP, metavar="N", help=f"words in each ranking (default: {TOP})"
    )
    streams.add_duration(parser, "--window", WINDOW, "length of a window")
    parser.add_argument("--slide", type=kinds.duration, metavar="TIME", help="time between windows (default: none)")
    streams.add_duration(parser, "--lateness", LATENESS, "how late a search may come and still count")


def check(arguments: argparse.Namespace) -> None:
    """A search that lies in no window would be lost."""
    if arguments.slide and kinds.seconds(arguments.slide) > kinds.seconds(arguments.window):
        raise UsageError(
            f"--slide: '{arguments.slide}' is longer than the window of {arguments.window}, "
            "and what lies between windows is lost"
        )


def run(spark: SparkSession, arguments: argparse.Namespace) -> str:
    """Connect the rule with its topics, and return what is to be printed at the end."""
    rankings = hot_words(
        searches(topics.read_stream(spark, arguments, "value", "timestamp")),
        top=arguments.top,
        window=arguments.window,
        slide=arguments.slide,
        lateness=arguments.lateness,
    )
    writer = topics.write_stream(records(rankings), arguments, arguments.topic)
    ended = streams.run(writer, arguments)
    return f"{ended.rows_read:,} searches read"


JOB: Final = job.Job("hot-words", DESCRIPTION, add_arguments, run, check)

if __name__ == "__main__":
    sys.exit(job.main(JOB))
