"""The blocking producer: a thin wrapper of the native engine.

The engine owns batches, connections, retries and order. This module parses settings and adapts results for blocking
code. Works with any Kafka. `pybroker.client.producing.async_producer` is the same over asyncio.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Self, TypedDict, Unpack, overload

from pybroker.client import native
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.closing import Closing
from pybroker.client.column_sending import ArrowArray, ArrowStream, sending
from pybroker.client.errors import ClientError, SettingError, TransactionAbortableError, TransactionFatalError
from pybroker.client.forking import register
from pybroker.client.metrics import MetricValue, producer_values
from pybroker.client.producing.delivery_callbacks import DeliveryCallbacks, OnDelivery
from pybroker.client.producing.exiting import end, left_s
from pybroker.client.producing.record_functions import Functions, Key, Partitioner, Serializer, Value
from pybroker.client.producing.record_metadata import RecordMetadata
from pybroker.client.producing.undelivered import Undelivered, noted
from pybroker.client.security import open_security
from pybroker.client.settings import ProducerSettings
from pybroker.client.transaction.blocking import BlockingTransactions
from pybroker.client.transaction.consumed import Consuming, GivenOffsets, offsets_of
from pybroker.client.transaction.group_metadata import GroupMetadata
from pybroker.client.transaction.suspended import SuspendedTransaction

__all__ = [
    "Continuation",
    "Delivery",
    "Headers",
    "OnDelivery",
    "Partitioner",
    "Producer",
    "RecordMetadata",
    "RowsDelivery",
    "Serializer",
]

Delivery = native.Delivery
RowsDelivery = native.RowsDelivery
Headers = Sequence[tuple[str, bytes | bytearray | None]] | Mapping[str, bytes | bytearray | None]
CLOSE_TIMEOUT_S = 120.0
"""Longer than the default delivery.timeout.ms, so that every record completes before `close` returns."""

_log = logging.getLogger("pybroker.client")


@dataclass(frozen=True, slots=True)
class Continuation:
    """The identity and sequence numbers of another producer, with which a new producer continues in its place.

    The broker accepts each sequence number of a producer once. Of several producers that continue from the same
    state, one succeeds. The others fail, or get the response of a duplicate batch if theirs has as many records. The
    identity is kept, so the first failed batch ends such a producer, and its waiting records fail.
    """

    producer_id: int
    epoch: int
    sequences: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The next sequence number by partition: the number of its records so far, modulo 2^31. 0 where it is missing."""


def read_settings(
    bootstrap_servers: str, properties: Mapping[str, object] | None, functions: Functions
) -> ProducerSettings:
    """Return a producer's settings from Kafka's keys. Raises SettingError."""
    given = dict(properties or {})
    if functions.partitioner is not None:
        named = given.get("partitioner") or given.get("partitioner.class")
        if named and named != functions.partitioner:
            raise SettingError(f"partitioner={named}: the constructor received another partitioner; set only one")
        if isinstance(functions.partitioner, str):
            given["partitioner"] = functions.partitioner
    settings = ProducerSettings.of_client(bootstrap_servers, given)
    open_security(settings)
    return settings


def native_arguments(
    settings: ProducerSettings, functions: Functions, continues: Continuation | None
) -> dict[str, Any]:
    """Return the engine's keyword arguments."""
    place = None
    if continues is not None:
        sequences = [(p.topic, p.partition, sequence) for p, sequence in continues.sequences.items()]
        place = (continues.producer_id, continues.epoch, sequences)
    return {
        "acks": settings.acks_number(),
        "enable_idempotence": settings.is_idempotent(),
        "continues": place,
        "key_serializer": functions.key_serializer,
        "value_serializer": functions.value_serializer,
        "partitioner": None if isinstance(functions.partitioner, str) else functions.partitioner,
    }


class _Others(TypedDict, total=False):
    """Arguments of a producer beside settings and serializers."""

    continues: Continuation | None
    partitioner: Partitioner | str | None
    on_delivery: OnDelivery | None


class Producer(native.Producer, Closing, Generic[Key, Value]):
    """`with Producer("127.0.0.1:9092") as p: p.send("orders", b"...")`. Thread-safe.

    A producer that is open when the process ends is closed then, within `exit.flush.timeout.ms`. One that is freed
    without `close` drops the unacknowledged records, and logs their count. A `Delivery` keeps its producer open.
    """

    _callbacks: DeliveryCallbacks
    _calls_partitioner: bool
    _client_id: str
    _exit_s: float
    _is_open = False
    _transactions: BlockingTransactions | None
    _undelivered: Undelivered

    if TYPE_CHECKING:
        # Without serializers keys and values are bytes.
        @overload
        def __init__(
            self: Producer[bytes | bytearray, bytes | bytearray],
            bootstrap_servers: str,
            properties: Mapping[str, object] | None = None,
            *,
            key_serializer: None = None,
            value_serializer: None = None,
            **others: Unpack[_Others],
        ) -> None: ...
        @overload
        def __init__(
            self: Producer[Any, Any],
            bootstrap_servers: str,
            properties: Mapping[str, object] | None = None,
            *,
            key_serializer: Serializer | None = None,
            value_serializer: Serializer | None = None,
            **others: Unpack[_Others],
        ) -> None: ...
        def __init__(self, *arguments: Any, **named: Any) -> None: ...

        def send(
            self,
            topic: str,
            value: Value | None,
            key: Key | None = None,
            *,
            partition: int = -1,
            timestamp_ms: int | None = None,
            headers: Headers | None = None,
            on_delivery: OnDelivery | None = None,
        ) -> Delivery:
            """As `help(Producer.send)` prints (`native/py/src/client/producer.rs`)."""

    def __new__(
        cls,
        bootstrap_servers: str,
        properties: Mapping[str, object] | None = None,
        *,
        continues: Continuation | None = None,
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
        partitioner: Partitioner | str | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Self:
        """Start the I/O thread. No request is sent before the first record. Raises SettingError.

        `on_delivery` is called for every record that is sent without a callback of its own (see `send`).
        """
        functions = Functions(key_serializer, value_serializer, partitioner, on_delivery)
        settings = read_settings(bootstrap_servers, properties, functions)
        callbacks = DeliveryCallbacks()
        arguments = native_arguments(settings, functions, continues)
        try:
            self = super().__new__(cls, settings, **arguments, on_delivery=on_delivery, begin_watching=callbacks.start)
        except (ValueError, OverflowError) as error:
            raise SettingError(str(error)) from None
        register(self)
        self._callbacks, self._calls_partitioner = callbacks, callable(partitioner)
        self._exit_s = settings.exit_flush_timeout_ms / 1000
        self._client_id, self._undelivered = settings.client_id, Undelivered(settings.unobserved_failures)
        self._transactions = None if settings.transactional_id is None else BlockingTransactions(self, settings)
        self._is_open = True
        return self

    @property
    def native(self) -> native.Producer:
        """The engine, for `LoadGenerator` and `LineSender`."""
        return self

    def _leave(self, error: BaseException | None) -> None:
        if error is None:
            return self.close()
        try:
            self.close(0.0)
        except ClientError as failure:
            # The exception of the block is raised, and not the failure that follows from it.
            noted(error, failure)

    def __del__(self) -> None:
        """Log the records that are lost with a producer that was not closed."""
        if self._is_open:
            self._is_open = False
            self._log_failures()
            end(self, "Producer", lambda: native.Producer.close(self, 0.0))
            if self._transactions is not None:
                self._transactions.stop()

    def metric_values(self) -> list[MetricValue]:
        """Return the values of `metrics`, with the groups and tags of Kafka's names."""
        return producer_values(self.metrics(), self._client_id)

    def init_transactions(self, timeout_s: float | None = None) -> None:
        """Get a producer id and epoch from the transaction coordinator, once, before the first transaction.

        An open transaction of an earlier producer with this `transactional.id` is aborted, and that producer is
        fenced. The default timeout, here and in the other calls of transactions, is `max.block.ms`. Raises
        TransactionError (TransactionTimeoutError: call it again), and SettingError without a `transactional.id`.
        """
        self._transactional().init(timeout_s)

    def begin_transaction(self) -> None:
        """Begin a transaction: consumers read all of its records, or none of them.

        Raises TransactionStateError in the wrong state, and TransactionFatalError.
        """
        self._transactional().driver.begin()

    def commit_transaction(self, timeout_s: float | None = None) -> None:
        """Flush, and commit the records sent since `begin_transaction`.

        Raises TransactionAbortableError (abort it), TransactionFatalError (close the producer), and
        TransactionTimeoutError: the outcome is unknown, and the same call again completes the commit.
        """
        self._transactional().end(self.flush, timeout_s, commits=True)

    def abort_transaction(self, timeout_s: float | None = None) -> None:
        """Abort the records sent since `begin_transaction`. Records that were not sent to a broker yet fail.

        Raises TransactionFatalError, and TransactionTimeoutError: call it again.
        """
        self._transactional().end(self.flush, timeout_s, commits=False)

    def send_offsets_to_transaction(
        self,
        consumed: Consuming | GivenOffsets,
        group: GroupMetadata | str | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Commit offsets with the transaction: the positions of a consumer, or given offsets of a group.

        The coordinator receives the member identity of a consumer, and rejects one that has lost its partitions
        (KIP-447). Raises TransactionError, TransactionStateError, and SettingError for a consumer with auto-commit.
        """
        self._transactional().send_offsets(offsets_of(consumed, group), timeout_s)

    def suspend_transaction(self, timeout_s: float = CLOSE_TIMEOUT_S) -> SuspendedTransaction:
        """Flush, and leave the transaction open for another producer of this `transactional.id`, which ends it.

        This producer cannot be used afterwards, and must be closed. Raises as `commit_transaction`, and
        DeliveryError.
        """
        return self._transactional().driver.suspend(lambda: self.flush(timeout_s))

    def resume_transaction(self, suspended: SuspendedTransaction) -> None:
        """Instead of `init_transactions`: take over a suspended transaction, to commit or abort it.

        Where the outcome of a commit is unknown, the same transaction may be committed again. Raises
        TransactionStateError.
        """
        self._transactional().driver.resume(suspended)

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """`with producer.transaction():` begins a transaction, and commits it; an exception in the block aborts it.

        Raises as `begin_transaction` and `commit_transaction`. After TransactionAbortableError of the commit, the
        transaction is aborted first.
        """
        self.begin_transaction()
        try:
            yield self
        except BaseException as error:
            self._abort_after(error)
            raise
        try:
            self.commit_transaction()
        except TransactionAbortableError as error:
            self._abort_after(error)
            raise

    def _abort_after(self, error: BaseException) -> None:
        """Abort. A fatal error of the abort replaces an abortable `error`; any other is added to it as a note."""
        try:
            if self._transactional().driver.is_open:
                self.abort_transaction()
        except ClientError as failure:
            if isinstance(error, TransactionAbortableError) and isinstance(failure, TransactionFatalError):
                raise failure from error
            error.add_note(f"the transaction could not be aborted: {failure}")

    def _transactional(self) -> BlockingTransactions:
        if self._transactions is None:
            raise SettingError("transactional.id is not set: this producer has no transactions")
        return self._transactions

    def send_columns(self, batch: ArrowArray | ArrowStream, *, topic: str | None = None) -> RowsDelivery:
        """Send a record for every row of Arrow data.

        The data is a record batch or table of pyarrow, a DataFrame of polars, or another object that exports an
        array or a stream of batches. A stream is read to its end first.

        Columns are found by name. `value` (binary or string; null is a tombstone) is required. Optional are `key`
        (binary or string), `topic` (string; overrides the argument), `partition` (int32 or int64; null: as `send`
        without one), `timestamp` (timestamp[us]; null: now) and `headers` (list<struct<key: string, value:
        binary>>). Columns that the broker assigns are ignored: `offset`, `timestamp_type` and `producer_id`, also as
        `timestampType` and `producerId`. So the columns of a consumer's take can be sent as they are, to the topics
        and partitions of its rows.

        Rows of a partition keep their order. Returns their `RowsDelivery`: its `len` is the number of rows sent, and
        its `result()` waits until they are acknowledged, or raises the first failure. Waits as `send` does.

        Raises SettingError for a column that is missing, unknown or of another type, and RecordError with the number
        of a row that cannot be sent: then no row was sent. Where memory stays full (BufferFullError) or the producer
        is closed meanwhile (ClosedError), the error contains the number of rows sent. Serializers and delivery
        callbacks apply to single records only. A producer whose partitioner is a function requires the column
        `partition`.
        """
        return sending(self, batch, topic, calls_partitioner=self._calls_partitioner)()

    def producer_id(self) -> tuple[int, int]:
        """Return id and epoch of this idempotent producer; waits up to `max.block.ms` for the broker to assign them.

        With a `transactional.id`, returns those of the open or next transaction without waiting. After a batch has
        failed for good, the producer requests new ones. Raises SettingError without `enable.idempotence`.
        """
        if self._transactions is not None:
            return self._transactions.driver.identity()
        return self._identity()

    def flush(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """Wait until every record sent so far is acknowledged or has failed, and its delivery callback has returned.

        Raises the first failure, with the count of undelivered records and their partitions. Not included are
        records with a callback, records of a transaction, and failures that the program has taken from a `Delivery`.
        The setting `unobserved.failures` defines whether failures are raised or logged. Raises DeliveryError after
        the timeout. Inside a delivery callback it does not wait for callbacks.
        """
        deadline = time.monotonic() + timeout_s
        super().flush(timeout_s)
        self._callbacks.wait(max(0.0, deadline - time.monotonic()))
        self._undelivered.report(self._failures(take=True))

    def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """Flush and close. Records that are not acknowledged before the timeout fail.

        An open transaction is aborted. All delivery callbacks have returned before. Raises as `flush`, once the
        producer is closed. If Ctrl-C ends the wait, the producer is still open.
        """
        try:
            self._abort_open(timeout_s)
            super().close(timeout_s)
        except ClientError:
            self._end()
            self._log_failures()
            raise
        self._end()
        self._undelivered.report(self._failures(take=True))

    def _log_failures(self) -> None:
        """Log undelivered records; the engine calls this at the first `send` after a failure."""
        self._undelivered.warn(self._failures(take=False))

    def _end_at_exit(self, began: float) -> None:
        """Close at the end of the process, which began to end at the time `began`."""

        def close() -> None:
            try:
                self._abort_open(left_s(self._exit_s, began))
                native.Producer.close(self, left_s(self._exit_s, began))
            finally:
                self._end(left_s(self._exit_s, began))

        if self._is_open:
            self._log_failures()
            end(self, "Producer", close)

    def _end(self, timeout_s: float | None = None) -> None:
        self._is_open = False
        self._callbacks.end(timeout_s)
        if self._transactions is not None:
            self._transactions.close()

    def _abort_open(self, timeout_s: float) -> None:
        if timeout_s > 0 and self._transactions is not None and self._transactions.driver.is_open:
            try:
                self.abort_transaction(timeout_s)
            except ClientError as error:
                _log.warning("a transaction was left open: %s", error)
