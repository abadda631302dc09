"""Streaming writes by transactions: each task leaves its rows in an open transaction, and the commit ends them all.

A transaction contains the rows of one task and an entry in the query's ledger, so a repetition detects committed
rows by the ledger. An attempt of a task fences all earlier ones. read_committed consumers see the rows when the
batch is committed; read_uncommitted consumers see them at once, also those of failed attempts. Must not know Spark.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pybroker.client import EARLIEST, LATEST, ClientError, Fetcher, Producer, SuspendedTransaction, TopicPartition
from pybroker_spark.disturbance import UNDISTURBED, Disturbance
from pybroker_spark.sink.attempt import Share
from pybroker_spark.sink.entries import Begun, Done, Entry, Wrote, parse_entry, write_entry
from pybroker_spark.sink.errors import LedgerError, SinkError, SplitError
from pybroker_spark.sink.ledger import Ledger, reading

if TYPE_CHECKING:
    from pybroker_spark.source.options import WriteOptions

_READ_SECONDS: Final = 60.0
_TIMEOUT_MS: Final = "900000"
"""The brokers' default maximum: a transaction is open from a task's first row to the commit of its batch."""


@dataclass(frozen=True, slots=True)
class TransactionalOutcome:
    """The result of an attempt."""

    begun: bool = False
    """Whether it has rows; a task without rows opens no transaction."""
    rows: int = 0
    suspended: SuspendedTransaction | None = None
    """The transaction with the rows; None where an earlier run of the batch has committed it."""
    disturbance: Disturbance = UNDISTURBED


def write(
    share: Share, ledger: Ledger, options: WriteOptions, batches: Iterable[pa.RecordBatch]
) -> TransactionalOutcome:
    """Write a task's rows into a transaction, and leave it open. Raises SinkError."""
    filled = (batch for batch in batches if batch.num_rows)
    first = next(filled, None)
    if first is None:
        return TransactionalOutcome()
    try:
        with _producer(options, f"{ledger.topic}-{share.task}") as producer:
            producer.init_transactions()
            # Earlier attempts are fenced, and their open transactions are aborted.
            if _is_written(share, ledger, options):
                rows = first.num_rows + sum(batch.num_rows for batch in filled)
                return TransactionalOutcome(begun=True, rows=rows)
            return _write(share, ledger, options, producer, _chain(first, filled))
    except ClientError as error:
        raise SinkError(f"{share}: {error}") from error


def _is_written(share: Share, ledger: Ledger, options: WriteOptions) -> bool:
    """Whether the task's rows are committed. Raises SinkError for a batch that began with the other `exactly.once`."""
    entries = read_committed(ledger, options)
    if is_done(entries, share.batch):
        return True
    if any(isinstance(entry, Begun) and entry.batch == share.batch for entry in entries):
        raise SinkError(
            f"{share}: the batch was begun with exactly.once=ledger, and rows of it may be in the log: have it"
            " finished so, then change the option"
        )
    return share.task in wrote_tasks(entries, share.batch)


def _write(
    share: Share, ledger: Ledger, options: WriteOptions, producer: Producer, batches: Iterable[pa.RecordBatch]
) -> TransactionalOutcome:
    rows = 0
    producer.begin_transaction()
    try:
        for batch in batches:
            rows += batch.num_rows
            producer.send_columns(batch, topic=options.topic)
        producer.send(ledger.topic, write_entry(Wrote(share.batch, share.task)), partition=0)
        suspended = producer.suspend_transaction()
        met = Disturbance.of_metrics(producer.metrics())
        return TransactionalOutcome(begun=True, rows=rows, suspended=suspended, disturbance=met)
    except BaseException:
        with contextlib.suppress(ClientError):
            producer.abort_transaction()
        raise


def commit(
    query: str, batch: int, outcomes: Mapping[int, TransactionalOutcome], ledger: Ledger, options: WriteOptions
) -> None:
    """Commit the transactions of every task of a batch, and record that it is done. Idempotent.

    Raises SplitError where other tasks have written the batch before, and SinkError where a transaction is lost:
    then the batch must be repeated, which does not write its committed rows again.
    """
    begun = {task: outcome for task, outcome in outcomes.items() if outcome.begun}
    if not begun:
        return
    try:
        entries = read_committed(ledger, options)
        if is_done(entries, batch):
            _abort(begun.values(), options)
            return
        strangers = wrote_tasks(entries, batch) - set(begun)
        if strangers:
            _abort(begun.values(), options)
            names = ", ".join(str(task) for task in sorted(strangers))
            raise SplitError(
                f"query {query} batch {batch}: task {names} has written rows of it, and has none now: the batch is"
                " split otherwise than it was at first. Sources that split by cores need as many as before"
                " (spark.default.parallelism). To have it written as if it had never been begun, delete topic"
                f" {ledger.topic}"
            )
        for outcome in begun.values():
            if outcome.suspended is not None:
                end(outcome.suspended, options, commits=True)
        ledger.cut(ledger.append(Done(batch)))
    except ClientError as error:
        raise SinkError(f"query {query} batch {batch}: {error}") from error


def is_done(entries: Iterable[Entry], batch: int) -> bool:
    """Whether every row of a batch is committed. Batches complete in order."""
    return any(isinstance(entry, Done) and entry.batch >= batch for entry in entries)


def wrote_tasks(entries: Iterable[Entry], batch: int) -> set[int]:
    """Return the tasks of a batch whose rows are committed."""
    return {entry.task for entry in entries if isinstance(entry, Wrote) and entry.batch == batch}


def read_committed(ledger: Ledger, options: WriteOptions) -> Sequence[Entry]:
    """Return the committed entries of the ledger. Raises LedgerError, ClientError."""
    partition = ledger.made()
    bounds = [
        ledger.admin.list_offsets({partition: where}, read_committed=True)[partition].offset
        for where in (EARLIEST, LATEST)
    ]
    entries: list[Entry] = []
    properties = {**reading(options.properties), "isolation.level": "read_committed"}
    with Fetcher(options.bootstrap_servers, properties) as fetcher:
        fetcher.assign({partition: bounds[0]})
        deadline = time.monotonic() + _READ_SECONDS
        while _position(fetcher, partition) < bounds[1]:
            entries += [parse_entry(record.value) for record in fetcher.poll(1.0)]
            if time.monotonic() > deadline:
                at = _position(fetcher, partition)
                raise LedgerError(f"{ledger.topic}-0: nothing came at offset {at} within {_READ_SECONDS} s")
    return entries


def _position(fetcher: Fetcher, partition: TopicPartition) -> int:
    return fetcher.positions()[partition]


def _producer(options: WriteOptions, transactional_id: str) -> Producer:
    own = {"transaction.timeout.ms": _TIMEOUT_MS, **options.properties, "transactional.id": transactional_id}
    return Producer(options.bootstrap_servers, own)


def end(suspended: SuspendedTransaction, options: WriteOptions, *, commits: bool) -> None:
    """Commit or abort a task's open transaction. Raises ClientError."""
    with _producer(options, suspended.transactional_id) as producer:
        producer.resume_transaction(suspended)
        if commits:
            producer.commit_transaction()
        else:
            producer.abort_transaction()


def _abort(outcomes: Iterable[TransactionalOutcome], options: WriteOptions) -> None:
    for outcome in outcomes:
        if outcome.suspended is not None:
            with contextlib.suppress(ClientError):
                end(outcome.suspended, options, commits=False)


def _chain(first: pa.RecordBatch, others: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    yield first
    yield from others
