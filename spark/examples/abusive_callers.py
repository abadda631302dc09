"""Abusive callers: addresses with more than 60 requests in a minute, as records of a topic that blocks them.

    requests (topic) -> address and time -> count per address and minute -> those over the limit -> offenders (topic)

The rule is that of chapter 7.4 of the book this repository began with: windows of one minute that do not overlap, a
limit of 60 that may be reached and not passed (its text says *more than*; its listing compares with `>=` and a limit
for testing), an address blocked for 30 minutes. Windows are those of the requests' own time, from full minute to full
minute, so that a replay counts the same.

Owns the rule. Must not know how records travel.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf

from pybroker_spark.pipelines import job, kinds, streams, topics

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import Column, DataFrame, SparkSession

NAME: Final = "abusive-callers"
DESCRIPTION = "Report the addresses with more requests in a minute than allowed."

LIMIT: Final = 60
WINDOW: Final = "1 minute"
LATENESS: Final = "1 minute"
BLOCKED_FOR: Final = "30 minutes"
BLANKS: Final = " \t\r\n"


def requests(records: DataFrame, *, address_field: str | None = None, time_field: str | None = None) -> DataFrame:
    """Records of a topic as (address, timestamp).

    The value is the address, as in the book, or JSON with the address in a field; the time is the record's own unless a
    field has it. A record without an address, or without a time, is no request; both are observed as `NAME`.
    """
    value = sf.col("value").cast("string")
    address = value if address_field is None else _field(address_field)
    time = sf.col("timestamp") if time_field is None else sf.try_to_timestamp(_field(time_field))
    read = records.select(sf.trim(address, sf.lit(BLANKS)).alias("address"), time.alias("timestamp"))
    is_request = sf.coalesce((sf.col("address") != "") & sf.col("timestamp").isNotNull(), sf.lit(False))
    counts = sf.count_if(is_request).alias("requests"), sf.count_if(~is_request).alias("others")
    return read.observe(NAME, *counts).where(is_request)


def _field(path: str) -> Column:
    return sf.get_json_object(sf.col("value").cast("string"), path)


def offenders(
    requests: DataFrame,
    *,
    limit: int = LIMIT,
    window: str = WINDOW,
    lateness: str = LATENESS,
    blocked_for: str = BLOCKED_FOR,
) -> DataFrame:
    """Addresses with more than `limit` requests in a window, of (address, timestamp).

    A request that is later than `lateness` behind the newest one may be left out; an earlier one always counts.
    """
    return (
        requests.withWatermark("timestamp", lateness)
        .groupBy(sf.window("timestamp", window), "address")
        .agg(sf.count(sf.lit(1)).alias("requests"), sf.max("timestamp").alias("last_request"))
        .where(sf.col("requests") > limit)
        .select(
            "address",
            sf.col("window.start").alias("window_start"),
            sf.col("window.end").alias("window_end"),
            "requests",
            "last_request",
            (sf.col("last_request") + sf.expr(f"INTERVAL {blocked_for}")).alias("blocked_until"),
        )
    )


def records(offenders: DataFrame) -> DataFrame:
    """Offenders as records by address, so that a compacted topic keeps the newest block of each."""
    value = sf.to_json(sf.struct(*offenders.columns))
    return offenders.select(sf.col("address").cast("binary").alias("key"), value.cast("binary").alias("value"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    topics.add_source(parser, default="access-log")
    topics.add_target(parser, default="abusive-callers")
    streams.add_arguments(parser)
    parser.add_argument(
        "--limit", type=kinds.count, default=LIMIT, metavar="N", help="maximum requests of an address in a window"
    )
    streams.add_duration(parser, "--window", WINDOW, "length of a window")
    streams.add_duration(parser, "--lateness", LATENESS, "how late a request may arrive and still count")
    streams.add_duration(parser, "--block", BLOCKED_FOR, "how long after its last request an address is blocked")
    parser.add_argument("--address-field", metavar="PATH", help="field of a JSON value with the address, as $.ip")
    parser.add_argument(
        "--time-field",
        metavar="PATH",
        help="field of a JSON value with the time, as $.at (default: the record's timestamp)",
    )
    parser.add_argument(
        "--emit",
        choices=("updates", "final"),
        default="updates",
        help="updates: when the limit is exceeded and at each later change; final: once, at the end of the window",
    )


def run(spark: SparkSession, arguments: argparse.Namespace) -> str:
    """Connect the rule with its topics, and return what is to be printed at the end."""
    found = requests(
        topics.read_stream(spark, arguments, "value", "timestamp"),
        address_field=arguments.address_field,
        time_field=arguments.time_field,
    )
    callers = offenders(
        found,
        limit=arguments.limit,
        window=arguments.window,
        lateness=arguments.lateness,
        blocked_for=arguments.block,
    )
    writing = topics.write_updates if arguments.emit == "updates" else topics.write_stream
    ended = streams.run(writing(records(callers), arguments, arguments.topic), arguments)
    text = f"{ended.observed['requests']:,} requests read, {ended.late_rows:,} late groups of them left out"
    others = ended.observed["others"]
    return f"{text}, {others:,} records without an address or a time" if others else text


JOB: Final = job.Job(NAME, DESCRIPTION, add_arguments, run)

if __name__ == "__main__":
    sys.exit(job.main(JOB))
