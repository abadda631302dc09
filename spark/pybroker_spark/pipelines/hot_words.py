"""Hot words: the words that were searched for most in each five minutes.

    searches (topic) -> count by window and word -> the first ten of each window -> rankings (topic)

The example of chapter 10.4 of the book this repository began with: the value is what was searched for, blanks around
it and empty searches do not count, windows of five minutes follow one another, the first ten are told. The words are
ranked by their counts, as its text says; its listing sorts by the words themselves before it takes ten. Equal counts
are ranked by the word, and windows are those of the searches' own time, so that a replay tells the same.

Owns the rule. Must not know how records travel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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

    `words` is an array of (rank, word, count), the most frequent first. As a stream a window is told once, when
    searches have come that are `lateness` past its end.
    """
    counted = (
        searches.withWatermark("timestamp", lateness)
        .groupBy(sf.window("timestamp", window, slide or window), "word")
        .agg(sf.count(sf.lit(1)).alias("count"))
    )
    # Aggregates of a window with all its words would not fit into a task; the first of them do.
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
