"""Word count: the words in the values of a topic, counted as they come.

    lines (topic) -> words -> count by word -> counts by word (topic)

The example of chapter 10.2 of the book this repository began with, which splits at blanks (its listing splits at tabs,
which its file does not have), with the comma and the lower case of its chapter 7.3.4 as options. A word's newest record
has its count so far, so a compacted topic is the table of counts.

Owns the rule. Must not know how records travel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


SEPARATOR: Final = r"\s+"


def words(lines: DataFrame, *, separator: str = SEPARATOR, fold_case: bool = False) -> DataFrame:
    """The words of `value`, one a row, as (word); what stands between separators and is blank is no word."""
    text = sf.col("value").cast("string")
    each = sf.explode(sf.split(sf.lower(text) if fold_case else text, separator))
    return lines.select(each.alias("word")).select(sf.trim("word").alias("word")).where(sf.col("word") != "")


def word_counts(words: DataFrame) -> DataFrame:
    """How often each word is there, as (word, count)."""
    return words.groupBy("word").agg(sf.count(sf.lit(1)).alias("count"))


def records(counts: DataFrame) -> DataFrame:
    """Counts as records: the word as key, the count in digits as value."""
    return counts.select(
        sf.col("word").cast("binary").alias("key"), sf.col("count").cast("string").cast("binary").alias("value")
    )
