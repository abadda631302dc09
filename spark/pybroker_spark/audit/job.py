"""The audit as a Spark job: one pass over topics in tasks, whose small tallies are merged on the driver.

    spark-submit spark/pybroker_spark/audit/job.py --bootstrap-server localhost:9092 --topic orders --expect load.json

Owns the options of the command and the distribution: every task counts a range of a partition. Exit status 0: every
record is in the log exactly once; 1: records are lost or duplicated; 2: the audit failed.
"""

from __future__ import annotations

import argparse
import dataclasses
import pickle
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from pybroker.client import ClientError
from pybroker_spark.audit.expected import Expected, ExpectedError, read_expected
from pybroker_spark.audit.report import Report, build_report
from pybroker_spark.audit.stamps import STAMP_BYTES
from pybroker_spark.audit.tally import COLUMNS, Pieces, merged
from pybroker_spark.session import SessionError
from pybroker_spark.source.errors import SourceError
from pybroker_spark.source.options import parse_read
from pybroker_spark.source.planning import Planner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SUMMARY = "Check that each stamped record is in the log exactly once"
_PIECE = "topic string, partition int, tally binary"
_MAX_BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_ARROW = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("tally", pa.binary())])


class AuditError(Exception):
    """The audit failed. The message is for the user."""


def audit(records: DataFrame, expected: Sequence[Expected] = ()) -> Report:
    """Audit a DataFrame with the columns of a read. Each task must get the rows of a partition in offset order."""
    from pyspark.sql import functions

    stamps = functions.substring("value", 1, STAMP_BYTES).alias("value")  # the rest of a value stays in the JVM
    selected = records.select(*(name for name in COLUMNS if name != "value"), stamps)
    with _batches_by_rows_alone(records.sparkSession):
        rows = selected.mapInArrow(tally_batches, _PIECE).collect()
    pieces = [(row["topic"], row["partition"], pickle.loads(row["tally"])) for row in rows]
    return build_report(merged(pieces), expected)


@contextmanager
def _batches_by_rows_alone(spark: SparkSession) -> Iterator[None]:
    """Disable the byte limit of Arrow batches: Spark sums a batch's bytes at each row, which takes most of the time.

    Rows that only contain stamps need no such limit; at its maximum it is ignored.
    """
    limit = spark.conf.get(_MAX_BATCH_BYTES)
    assert limit is not None
    spark.conf.set(_MAX_BATCH_BYTES, str(2**31 - 1))
    try:
        yield
    finally:
        spark.conf.set(_MAX_BATCH_BYTES, limit)


def tally_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Count all batches of a task, and yield the tally."""
    pieces = Pieces()
    for batch in batches:
        pieces.add(batch)
    rows = [
        {"topic": topic, "partition": partition, "tally": pickle.dumps(tally)}
        for topic, partition, tally in pieces.all()
    ]
    yield pa.RecordBatch.from_pylist(rows, schema=_ARROW)


def audit_topics(
    spark: SparkSession,
    bootstrap_servers: str,
    topics: Sequence[str],
    expected: Sequence[Expected] = (),
    options: Mapping[str, str] | None = None,
) -> Report:
    """Audit whole topics; `options` are further options of the read (`endingOffsets`, `minPartitions` ...)."""
    read = _read_options(bootstrap_servers, topics, options or {})
    with Planner(parse_read(read)) as planner:
        planner.partitions()
        report = audit(spark.read.format("pybroker").options(**read).load(), expected)
        planner.partitions(missing_ok=True)
        return dataclasses.replace(report, leader_changes=planner.leader_changes)


def _read_options(bootstrap_servers: str, topics: Sequence[str], further: Mapping[str, str]) -> dict[str, str]:
    where = {"kafka.bootstrap.servers": bootstrap_servers, "subscribe": ",".join(topics)}
    return {**where, "columns": ",".join(COLUMNS), **further}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of the command."""
    parser.add_argument("--bootstrap-server", required=True, metavar="HOST:PORT", help="a broker of the cluster")
    parser.add_argument("--topic", action="append", required=True, metavar="NAME", help="a topic; may be given again")
    parser.add_argument(
        "--expect",
        type=Path,
        metavar="FILE",
        help="the load's report: its --json, or acknowledged.parquet of --parquet",
    )
    parser.add_argument(
        "--option",
        action="append",
        type=_option,
        default=[],
        metavar="KEY=VALUE",
        help="a further option of the read",
    )
    parser.add_argument("--master", metavar="URL", help="Spark's master (default: spark-submit's, or local[*])")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="also write the report as JSON; - prints JSON in place of the table"
    )


def main(options: argparse.Namespace) -> int:
    """Run the audit and print the report. Returns the exit status."""
    try:
        expected = [] if options.expect is None else read_expected(options.expect)
        _check(options)
        report = _in_session(options, expected)
        _write(options.json, report)
    except (AuditError, ExpectedError, SessionError, SourceError, ClientError) as error:
        print(f"audit: {error}", file=sys.stderr)
        return 2
    print(report.as_json() if str(options.json) == "-" else report.as_table())
    if not report.findings:
        print("audit: no record has a stamp: there is nothing to check", file=sys.stderr)
        return 2
    return 0 if report.is_exactly_once else 1


def _check(options: argparse.Namespace) -> None:
    """Validate the options before Spark starts. Raises AuditError, SourceError and ClientError."""
    read = parse_read(_read_options(options.bootstrap_server, options.topic, dict(options.option)))
    read.check_batch()
    with Planner(read) as planner:
        planner.partitions()
    place: Path | None = options.json
    if place is not None and str(place) != "-" and (place.is_dir() or not place.absolute().parent.is_dir()):
        raise AuditError(f"--json {place}: must be a file in a directory that exists")


def _in_session(options: argparse.Namespace, expected: Sequence[Expected]) -> Report:
    """Audit in the running session, which stays open, or in a session of this program."""
    from pyspark.sql import SparkSession

    import pybroker_spark
    from pybroker_spark.spark_errors import SPARK_ERRORS, sentence

    running = SparkSession.getActiveSession()
    spark = running or pybroker_spark.session("pybroker audit", master=options.master)
    if running is None:
        spark.sparkContext.setLogLevel("OFF")  # a failure is printed in one line; Spark would log each attempt
    try:
        pybroker_spark.register(spark)
        return audit_topics(spark, options.bootstrap_server, options.topic, expected, dict(options.option))
    except SPARK_ERRORS as error:
        raise AuditError(sentence(error)) from None
    finally:
        if running is None:
            spark.stop()


def _write(place: Path | None, report: Report) -> None:
    if place is None or str(place) == "-":
        return
    try:
        place.write_text(report.as_json() + "\n")
    except OSError as error:
        raise AuditError(f"--json {place}: {error.strerror}") from None


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line of spark-submit."""
    parser = argparse.ArgumentParser(prog="audit", description=SUMMARY)
    add_options(parser)
    return main(parser.parse_args(arguments))


def _option(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"{text}: must read KEY=VALUE")
    return key, value


if __name__ == "__main__":
    sys.exit(run())
