"""Robo-adviser: stocks whose price of the day is the highest, or the lowest, of the last N trading days.

    quotes (topic) -> history by stock -> new highs and lows -> signals (topic)

The selection of chapter 10.3 of the book this repository began with. A line has eight columns: name, code, trading day,
previous close, open, high, low, close; text stands in single quotes, which are not part of it. The book computes the
extremes of all days in a batch and leaves its second step out, in which only stocks stay whose extreme is on the last
day; both steps are here, and as a stream, which its text names as the other way. What its listing leaves to chance is
settled: a stock with one line has its dates too; of equal prices the last day counts, so that reaching the highest
price again is a high; a line that cannot be read does not end the job. A stock with less than N days has no N-day high.

Owns the rule. Must not know how records travel.
"""

from __future__ import annotations

import datetime
import json
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import Window
from pyspark.sql import functions as sf

from pybroker_spark.pipelines import dead_letters, file_rows, job, kinds, parsing, streams, topics

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.state import GroupState

NAME: Final = "robo-adviser"
DESCRIPTION = "Report which stocks reach the highest or lowest price of their last trading days."

DAYS: Final = 20
COLUMNS: Final = ("key", "value", "topic", "partition", "offset")
QUOTE: Final = (
    "name STRING, code STRING, trade_date TIMESTAMP, previous_close DOUBLE, "
    "open DOUBLE, high DOUBLE, low DOUBLE, close DOUBLE"
)
READING: Final = {"quote": "'", "timestampFormat": "yyyy-MM-dd HH:mm:ss.SSS", "ignoreLeadingWhiteSpace": "true"}
SIGNAL: Final = "code string, name string, trade_date date, kind string, price double, days int"
_STATE: Final = "history string"
"""A history as JSON: PySpark 4.3 cannot read the schema of a state with arrays."""


def quotes(records: DataFrame) -> DataFrame:
    """Records of a topic with (code, name, trade_date, high, low), and `error` where a value is no quote."""
    read = parsing.parsed(
        records.withColumn("__text", sf.col("value").cast("string")),
        "__text",
        file_rows.parse_schema(QUOTE),
        "csv",
        READING,
    )
    lacking = sf.col("row").isNotNull() & (
        (sf.coalesce(sf.trim("row.code"), sf.lit("")) == "")
        | sf.col("row.trade_date").isNull()
        | sf.coalesce(
            sf.isnan("row.high") | sf.isnan("row.low") | (sf.col("row.high") < sf.col("row.low")), sf.lit(True)
        )
    )
    fault = "a quote needs a code, a trading day, a high, and a low that is not above it"
    return read.select(
        *records.columns,
        sf.trim("row.code").alias("code"),
        sf.trim("row.name").alias("name"),
        sf.to_date("row.trade_date").alias("trade_date"),
        sf.col("row.high").alias("high"),
        sf.col("row.low").alias("low"),
        sf.when(lacking, sf.lit(fault)).otherwise(sf.col("error")).alias("error"),
    )


def signals(quotes: DataFrame, *, days: int = DAYS) -> DataFrame:
    """All new highs and lows of quotes that are all there, as `SIGNAL`: of every day, seen from that day."""
    daily = quotes.groupBy("code", "trade_date").agg(
        sf.max("name").alias("name"), sf.max("high").alias("high"), sf.min("low").alias("low")
    )
    order = Window.partitionBy("code").orderBy("trade_date")
    last = order.rowsBetween(1 - days, Window.currentRow)
    seen = daily.select(
        "*",
        sf.count(sf.lit(1)).over(last).alias("seen"),
        sf.max("high").over(last).alias("highest"),
        sf.min("low").over(last).alias("lowest"),
    ).where(sf.col("seen") == days)
    kinds = [
        seen.where(sf.col(price) == sf.col(extreme)).select(
            "code",
            "name",
            "trade_date",
            sf.lit(price).alias("kind"),
            sf.col(price).alias("price"),
            sf.lit(days).alias("days"),
        )
        for price, extreme in (("high", "highest"), ("low", "lowest"))
    ]
    return kinds[0].unionAll(kinds[1])


class Signal(NamedTuple):
    """A new high or low of a stock."""

    trade_date: datetime.date
    kind: str
    price: float


@dataclass(slots=True)
class History:
    """The last trading days of one stock. Invariant: at most `size` days, the newest days that have quotes."""

    size: int
    days: dict[datetime.date, tuple[float, float]] = field(default_factory=dict)
    reported_date: datetime.date | None = None
    """The day of which `reported_high` and `reported_low` have been reported, as far as they have."""
    reported_high: float | None = None
    reported_low: float | None = None

    def take(self, quotes: Iterable[tuple[datetime.date, float, float]]) -> Iterator[Signal]:
        """Add quotes of (day, high, low), in the order of their days, and yield what they show of the newest day.

        A quote of a day that is there widens it. One of an earlier day counts for the days after it and has no signals
        of its own, and one from before the history is too late.
        """
        for day, high, low in sorted(quotes):
            known = self.days.get(day)
            self.days[day] = (high, low) if known is None else (max(high, known[0]), min(low, known[1]))
            if len(self.days) > self.size:
                del self.days[min(self.days)]
            yield from self._signals()

    def _signals(self) -> Iterator[Signal]:
        """What is new about the newest day: reported when it arises, and again when its price goes further."""
        newest = max(self.days)
        if self.reported_date != newest:
            self.reported_date, self.reported_high, self.reported_low = newest, None, None
        if len(self.days) < self.size:
            return
        high, low = self.days[newest]
        if high == max(one[0] for one in self.days.values()) and (
            self.reported_high is None or high > self.reported_high
        ):
            self.reported_high = high
            yield Signal(newest, "high", high)
        if low == min(one[1] for one in self.days.values()) and (self.reported_low is None or low < self.reported_low):
            self.reported_low = low
            yield Signal(newest, "low", low)


def signal_stream(quotes: DataFrame, *, days: int = DAYS) -> DataFrame:
    """New highs and lows of a stream of quotes as they arise, as `SIGNAL`."""

    def advance(key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        import pandas as pd

        history = _restored(days, state)
        frame = pd.concat(list(frames), ignore_index=True)
        found = list(history.take(zip(frame["trade_date"], frame["high"], frame["low"], strict=True)))
        state.update((_kept(history),))
        name = str(frame["name"].iloc[-1])
        rows = [(str(key[0]), name, one.trade_date, one.kind, one.price, days) for one in found]
        yield pd.DataFrame(rows, columns=["code", "name", "trade_date", "kind", "price", "days"])

    return (
        quotes.select("code", "name", "trade_date", "high", "low")
        .groupBy("code")
        .applyInPandasWithState(advance, SIGNAL, _STATE, "append", "NoTimeout")
    )


def _restored(days: int, state: GroupState) -> History:
    if not state.exists:
        return History(days)
    (text,) = state.get
    kept = json.loads(text)
    reported_date, *reported = kept["reported"]
    reported_date = None if reported_date is None else datetime.date.fromisoformat(reported_date)
    known = {datetime.date.fromisoformat(day): (high, low) for day, high, low in kept["days"]}
    return History(days, known, reported_date, *reported)


def _kept(history: History) -> str:
    days = [(day.isoformat(), float(high), float(low)) for day, (high, low) in sorted(history.days.items())]
    reported_date = None if history.reported_date is None else history.reported_date.isoformat()
    return json.dumps({"days": days, "reported": [reported_date, history.reported_high, history.reported_low]})


def records(signals: DataFrame, topic: str) -> DataFrame:
    """Signals as records by stock, for `topic`."""
    value = sf.to_json(sf.struct(*signals.columns))
    return signals.select(
        sf.lit(topic).alias("topic"),
        sf.col("code").cast("binary").alias("key"),
        value.cast("binary").alias("value"),
        sf.lit(None).cast(dead_letters.HEADERS_TYPE).alias("headers"),
    )


def letters(bad: DataFrame, topic: str) -> DataFrame:
    """Records that are no quotes as dead letters for `topic`."""
    return bad.select(
        sf.lit(topic).alias("topic"), "key", "value", dead_letters.of_record(NAME, sf.col("error")).alias("headers")
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    topics.add_source(parser, default="stock-quotes")
    topics.add_target(parser, default="stock-signals")
    topics.add_dead_letters(parser, without="they are left out and counted")
    streams.add_arguments(parser)
    parser.add_argument("--days", type=kinds.count, default=DAYS, metavar="N", help=f"trading days (default: {DAYS})")


def run(spark: SparkSession, arguments: argparse.Namespace) -> str:
    """Connect the rule with its topics, and return what is to be printed at the end."""
    read = quotes(topics.read_stream(spark, arguments, *COLUMNS))
    counted = read.observe(NAME, sf.count(sf.lit(1)).alias("records"), sf.count("error").alias("dead"))
    found = records(signal_stream(counted.where(sf.col("error").isNull()), days=arguments.days), arguments.topic)
    if arguments.dead_letter_topic is not None:
        found = found.unionAll(letters(read.where(sf.col("error").isNotNull()), arguments.dead_letter_topic))
    ended = streams.run(topics.write_stream(found, arguments), arguments)
    kept = ended.observed["records"] - ended.observed["dead"]
    return f"{kept:,} quotes read, {ended.observed['dead']:,} records that are none"


JOB: Final = job.Job(NAME, DESCRIPTION, add_arguments, run)

if __name__ == "__main__":
    sys.exit(job.main(JOB))
