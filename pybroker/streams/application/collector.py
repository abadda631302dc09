"""Sends the records of one task through the producer of its thread (`RecordCollectorImpl`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from pybroker.client.errors import ClientError, TransactionError
from pybroker.client.producing.producer import Delivery
from pybroker.client.producing.record_metadata import RecordMetadata
from pybroker.streams.columns.program import Output
from pybroker.streams.errors import StreamsError, TaskMigratedError
from pybroker.streams.exception_handlers import ErrorContext, Handlers, log_and_fail
from pybroker.streams.runtime.collector import ProducedRecord, RecordCollector


class Sending(Protocol):
    """The part of a thread's producer that a collector uses."""

    def send(self, record: ProducedRecord, partition: int, on_delivery: Any) -> Delivery:
        """Send a record, and begin a transaction if none is open."""

    def send_columns(self, rows: Any, topic: str) -> object:
        """Send a record for each row of a record batch, and begin a transaction if none is open."""

    def partitions(self, topic: str) -> int:
        """Return the number of partitions of a topic."""


class ProducerCollector(RecordCollector):
    """Sends records, and knows where the changelog of each store of the task ends."""

    def __init__(
        self,
        producer: Sending,
        task: tuple[str, int],
        changelogs: Collection[str],
        handlers: Handlers,
    ) -> None:
        """`task` is the id and the partition of the task, `changelogs` are the changelog topics of its stores."""
        self._producer = producer
        self._task_id, self._partition = task
        self._changelogs = frozenset(changelogs)
        self._handlers = handlers
        self._last: dict[str, Delivery] = {}
        self._failure: StreamsError | None = None
        self._discards = False
        # Without a handler the first failure is that of the next flush, and no record needs a callback.
        self._observes = handlers.production is not log_and_fail or handlers.dead_letter_topic is not None

    def send(self, record: ProducedRecord) -> None:
        """Send a record. A changelog record goes to the partition of the task.

        Raises:
            TaskMigratedError: the transaction has ended, for example after its timeout.
            StreamsError: a record before could not be sent, and the production handler decided to fail.
        """
        if self._discards:
            return
        self.raise_failure()
        try:
            self._send(record)
        except TransactionError as error:
            raise TaskMigratedError(f"the transaction of task {self._task_id} cannot be committed: {error}") from error

    def _send(self, record: ProducedRecord) -> None:
        if record.topic in self._changelogs:
            self._last[record.topic] = self._producer.send(record, self._partition, None)
            return
        partition = -1 if record.partition is None else record.partition
        on_delivery = self._on_delivery(record) if self._observes else None
        try:
            self._producer.send(record, partition, on_delivery)
        except TransactionError:
            raise
        except ClientError as error:
            if not self._continues(record, error):
                raise StreamsError(
                    f"task {self._task_id} cannot send a record to topic {record.topic}: {error}"
                ) from error

    def send_columns(self, output: Output) -> None:
        """Send rows. A row that is not delivered fails the next flush.

        Raises:
            TaskMigratedError: the transaction has ended, for example after its timeout.
            StreamsError: a row cannot be sent.
        """
        if self._discards:
            return
        try:
            self._producer.send_columns(output.rows, output.topic)
        except TransactionError as error:
            raise TaskMigratedError(f"the transaction of task {self._task_id} cannot be committed: {error}") from error
        except ClientError as error:
            raise StreamsError(f"task {self._task_id} cannot send rows to topic {output.topic}: {error}") from error

    def partitions(self, topic: str) -> int:
        """Return the number of partitions of a topic, for partitioners."""
        return self._producer.partitions(topic)

    def discard(self) -> None:
        """Send nothing more: the task is closed without a commit, and its last writes do not count."""
        self._discards = True
        self._last.clear()
        self._failure = None

    def raise_failure(self) -> None:
        """Raise the failure of a record that was sent before, once."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def take_changelog_offsets(self) -> Mapping[str, int]:
        """Return the offset after the last changelog record by topic, since the last call. All records are flushed."""
        last, self._last = self._last, {}
        return {topic: delivery.result().offset + 1 for topic, delivery in last.items()}

    def _on_delivery(self, record: ProducedRecord) -> Callable[[Exception | None, RecordMetadata], object]:
        def delivered(error: Exception | None, _metadata: RecordMetadata) -> None:
            if error is not None and not self._continues(record, error):
                failure = StreamsError(f"task {self._task_id} cannot send a record to topic {record.topic}: {error}")
                failure.__cause__ = error
                self._failure = failure

        return delivered

    def _continues(self, record: ProducedRecord, error: Exception) -> bool:
        """Have the production handler decide about a record that was not sent."""
        timestamp = -1 if record.timestamp is None else record.timestamp
        context = ErrorContext(
            self._task_id, "", record.topic, -1, -1, timestamp, record.key, record.value, record.headers
        )
        response = self._handlers.decide(self._handlers.production, context, error)
        for letter in response.dead_letters:
            if letter.topic != record.topic:  # A dead letter that cannot be sent has no dead letter.
                self._producer.send(letter, -1, None)
        return response.continues
