"""Spark's interface of the streaming write: one writer for each batch, and another for its commit or abort.

Owns the mapping of Spark's calls to query, batch and task, and the messages from tasks to the commit. At planning
neither query nor batch is known, so tasks read from the ledger whether their batch is done.
`pybroker_spark.sink.attempt` implements an attempt; options and the form of rows are those of the batch write.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from pybroker_spark.disturbance import UNDISTURBED, Disturbance, log_disturbance
from pybroker_spark.sink import transactional
from pybroker_spark.sink.attempt import Attempt, Share
from pybroker_spark.sink.entries import Done, begun_tasks, place_of
from pybroker_spark.sink.errors import SinkError, SplitError
from pybroker_spark.sink.ledger import open_ledger
from pybroker_spark.sink.settings import forced_properties
from pybroker_spark.sink.transactional import TransactionalOutcome
from pybroker_spark.source.options import TRANSACTIONS, WriteOptions, parse_write
from pybroker_spark.source.schema import written_columns
from pybroker_spark.source.worker import log_as_spark

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

QUERY: Final = "sql.streaming.queryId"
"""The local property with the query id, which is that of the checkpoint."""
BATCH: Final = "streaming.sql.batchId"
_SPECULATION: Final = "spark.speculation"


@dataclass(slots=True)
class WrittenShare(WriterCommitMessage):
    """The result of the successful attempt of a task."""

    share: Share
    begun: bool
    done: bool
    rows: int
    repeated: int
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    transaction: TransactionalOutcome | None = None
    """Set with `exactly.once=transactions`."""
    disturbance: Disturbance = UNDISTURBED


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes each batch of a query exactly once."""

    def __init__(self, options: WriteOptions, columns: Sequence[str]) -> None:
        self.options, self.columns = options, list(columns)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenShare:
        """Run in a task: write its rows. Raises SinkError."""
        log_as_spark()
        share = _share()
        ledger = open_ledger(self.options.bootstrap_servers, self.options.properties, share.query_id)
        if self.options.exactly_once == TRANSACTIONS:
            chosen = (batch.select(self.columns) for batch in iterator)
            written = transactional.write(share, ledger, self.options, chosen)
            met = written.disturbance
            return WrittenShare(share, written.begun, False, written.rows, 0, transaction=written, disturbance=met)
        outcome = Attempt(share, ledger, self.options).write(batch.select(self.columns) for batch in iterator)
        return WrittenShare(
            share,
            outcome.begun,
            outcome.done,
            outcome.rows,
            outcome.repeated,
            dict(outcome.topic_ids or {}),
            disturbance=outcome.disturbance,
        )

    def commit(self, messages: list[WriterCommitMessage | None], batch_id: int) -> None:
        """Run on the driver, when every task has written: record that the batch is done. Idempotent.

        Raises SplitError when a task that began the batch is not part of it any more.
        """
        shares = [message for message in messages if isinstance(message, WrittenShare)]
        if not any(share.begun for share in shares):
            return  # no rows, so there is nothing to record
        query = shares[0].share.query_id
        log_disturbance(f"query {query} batch {batch_id}", (share.disturbance for share in shares))
        ledger = open_ledger(self.options.bootstrap_servers, self.options.properties, query)
        if self.options.exactly_once == TRANSACTIONS:
            outcomes = {share.share.task: share.transaction for share in shares if share.transaction is not None}
            transactional.commit(query, batch_id, outcomes, ledger, self.options)
            return
        entries = ledger.read()
        if place_of(entries, batch_id, 0).done:
            return
        strangers = begun_tasks(entries, batch_id) - {share.share.task for share in shares if share.begun}
        if strangers:
            names = ", ".join(str(task) for task in sorted(strangers))
            marks = place_of(entries, batch_id, min(strangers)).marks()
            spans = [f"{t}-{i} from offset {end}" for t, mark in marks.items() for i, end in enumerate(mark.ends)]
            raise SplitError(
                f"query {query} batch {batch_id}: task {names} began it ({', '.join(spans)}), and has no rows of it"
                f" now: {len(messages)} tasks repeat what others began, and rows may be in the log twice. Sources that"
                " split by cores need as many as before (spark.default.parallelism). To go on regardless, delete topic"
                f" {ledger.topic}"
            )
        topic_ids = {topic: named for share in shares for topic, named in share.topic_ids.items()}
        ledger.cut(ledger.append(Done(batch_id, topic_ids)))

    def abort(self, messages: list[WriterCommitMessage | None], batch_id: int) -> None:
        """Run on the driver after a failed batch: do nothing. A repetition of the batch skips the written rows."""


def make(options: Mapping[str, str], schema: StructType) -> StreamWriter:
    """Return the writer of a streaming write. Raises OptionError."""
    parsed = parse_write(options)
    parsed = dataclasses.replace(parsed, properties=forced_properties(parsed.properties))
    return StreamWriter(parsed, written_columns(schema, parsed.topic))


def _share() -> Share:
    context = TaskContext.get()
    if context is None:
        raise SinkError("a streaming write runs in a task of Spark, and here is none")
    query, batch = context.getLocalProperty(QUERY), context.getLocalProperty(BATCH)
    if query is None or batch is None:
        raise SinkError(f"Spark does not give this task both {QUERY} and {BATCH}: it belongs to no streaming query")
    if (context.getLocalProperty(_SPECULATION) or "").lower() == "true":
        raise SinkError(
            f"{_SPECULATION}=true: two attempts of a task would write at once; must be false for a streaming write"
        )
    return Share(query, int(batch), context.partitionId())
