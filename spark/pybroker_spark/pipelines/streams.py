"""Runs a streaming query to its end, and counts its rows.

Owns the options of streams: checkpoint, trigger, durations. A query ends when all current data has been read
(`--available-now`), when it fails, or by SIGTERM and SIGINT. No micro-batch is lost: data that is not in the
checkpoint is read again. Must not know the data.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.streaming.listener import StreamingQueryListener

from pybroker_spark.pipelines import kinds
from pybroker_spark.pipelines.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        StreamingQueryProgress,
    )
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

POLL_SECONDS = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare checkpoint and trigger."""
    parser.add_argument(
        "--checkpoint",
        required=True,
        metavar="DIR",
        help="directory of the query's read offsets; a restarted query continues from these offsets",
    )
    add_trigger(parser)


def add_trigger(parser: argparse.ArgumentParser) -> None:
    """Declare the trigger of micro-batches."""
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--available-now", action="store_true", help="read the records that exist at the start, then end")
    when.add_argument(
        "--interval",
        type=kinds.duration,
        metavar="TIME",
        help="time between micro-batches; if omitted, each starts when the previous one ends",
    )


def add_duration(parser: argparse.ArgumentParser, option: str, default: str, what: str) -> None:
    """Declare an option with a duration."""
    parser.add_argument(
        option, type=kinds.duration, default=default, metavar="TIME", help=f"{what} (default: {default})"
    )


def check(arguments: argparse.Namespace) -> None:
    """Check, before Spark starts, that a checkpoint on this machine is a directory, or can be created."""
    place = getattr(arguments, "checkpoint", None)
    if place is None:
        return
    path = Path(place.removeprefix("file://").removeprefix("file:"))
    if ":/" in str(path):
        return
    there = next(one for one in (path.absolute(), *path.absolute().parents) if one.exists())
    if not there.is_dir():
        raise UsageError(f"--checkpoint: '{place}' cannot be a directory, because '{there}' is a file: give another")
    if not os.access(there, os.W_OK | os.X_OK):
        raise UsageError(f"--checkpoint: '{place}' cannot be written in '{there}': give a directory of your own")


@dataclass(slots=True)
class Ended:
    """The counts of a query that has ended, for this run."""

    rows_read: int = 0
    late_rows: int = 0
    """Rows behind the watermark. An aggregation counts its partial results, not the rows in them."""
    observed: Counter[str] = field(default_factory=Counter)
    """Sums of the metrics of the query's observations."""

    counted: tuple[int, str] = (-1, "")
    """Number and time of the last counted micro-batch. Spark reports them in order."""

    def add(self, progress: StreamingQueryProgress) -> None:
        """Add the counts of one micro-batch, unless they were added."""
        if (progress.batchId, progress.timestamp) <= self.counted:
            return
        self.counted = (progress.batchId, progress.timestamp)
        self.rows_read += sum(source.numInputRows for source in progress.sources)
        self.late_rows += sum(operator.numRowsDroppedByWatermark for operator in progress.stateOperators)
        for row in progress.observedMetrics.values():
            self.observed.update({name: value or 0 for name, value in row.asDict().items()})


class _Listener(StreamingQueryListener):
    """Adds up the progress of all queries of a session, by run.

    Spark reports progress with a delay, and a query keeps only its last hundred reports: together they are complete.
    """

    def __init__(self) -> None:
        self._runs: dict[str, Ended] = {}
        self._lock = threading.Lock()

    def add(self, *reported: StreamingQueryProgress) -> None:
        """Add the progress of micro-batches of a query; duplicates are ignored."""
        with self._lock:
            for progress in reported:
                self._runs.setdefault(str(progress.runId), Ended()).add(progress)

    def ended(self, query: StreamingQuery) -> Ended:
        """Return the counts of a query."""
        self.add(*query.recentProgress)
        return self._runs.get(str(query.runId), Ended())

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Do nothing."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Add the progress of a micro-batch."""
        self.add(event.progress)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Do nothing."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Do nothing: missing progress is read from the query."""


def run(writer: DataStreamWriter, arguments: argparse.Namespace, *, checkpoint: str | None = None) -> Ended:
    """Start a query, wait for its end and return its counts."""
    (ended,) = run_all([(writer, checkpoint or arguments.checkpoint)], arguments)
    return ended


def run_all(writers: list[tuple[DataStreamWriter, str]], arguments: argparse.Namespace) -> list[Ended]:
    """Start queries, each with its checkpoint, and wait until all have ended. When one fails, all are stopped.

    Raises StreamingQueryException as Spark does.
    """
    spark = writers[0][0]._spark
    listener = _Listener()
    spark.streams.addListener(listener)
    queries: list[StreamingQuery] = []
    try:
        with _stopping_signal() as stop:
            for writer, checkpoint in writers:
                queries.append(_triggered(writer, arguments).option("checkpointLocation", checkpoint).start())
            _wait(queries, stop)
        return [listener.ended(query) for query in queries]
    finally:
        for query in queries:
            query.stop()
        spark.streams.removeListener(listener)


def _triggered(writer: DataStreamWriter, arguments: argparse.Namespace) -> DataStreamWriter:
    if arguments.available_now:
        return writer.trigger(availableNow=True)
    if arguments.interval is not None:
        return writer.trigger(processingTime=arguments.interval)
    return writer


def _wait(queries: list[StreamingQuery], stop: threading.Event) -> None:
    running = list(queries)
    while running and not stop.is_set():
        running = [query for query in running if not query.awaitTermination(POLL_SECONDS)]
    for query in running:
        query.stop()


@contextmanager
def _stopping_signal() -> Iterator[threading.Event]:
    """Yield an event that SIGTERM sets; outside the main thread it is never set."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def stopping(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    before = signal.signal(signal.SIGTERM, stopping)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGTERM, before)
