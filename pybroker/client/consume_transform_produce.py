"""Consume, transform, produce: one transaction for each batch, with its output records and its committed offsets.

Owns the error handling of such a program: from which offset to read after an abort, which failures require a new
producer, and which end the program. The output of each input record is written exactly once (KIP-98, KIP-447).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Event, RLock
from typing import Any

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.closing import Closing
from pybroker.client.consuming.consumer import Consumer
from pybroker.client.consuming.fetcher import Record
from pybroker.client.errors import (
    ClosedError,
    ProducerFencedError,
    TransactionAbortableError,
    TransactionTimeoutError,
)
from pybroker.client.one_caller import ThreadCalls, one_caller
from pybroker.client.producing.producer import Headers, Producer

_log = logging.getLogger("pybroker.client")


@dataclass(frozen=True, slots=True)
class Output:
    """A record to write: the arguments of `Producer.send`."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    partition: int = -1
    timestamp_ms: int | None = None
    headers: Headers | None = None


Transform = Callable[[Sequence[Record]], Iterable[Output]]
"""Returns the output of the records of one poll.

It may be called again with the same records, so it must be free of side effects.
"""


@one_caller(free=("close",))
class ConsumeTransformProduce(Closing):
    """`with ConsumeTransformProduce(servers, ["in"], copy, group_id="g", transactional_id="g-1") as job: job.run()`.

    Programs of one group share the partitions of the topics. Each has a `transactional_id` of its own, which it keeps
    after a restart. One thread at a time; any thread may close it.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        topics: Sequence[str],
        transform: Transform,
        *,
        group_id: str,
        transactional_id: str,
        consumer: Mapping[str, Any] | None = None,
        producer: Mapping[str, Any] | None = None,
    ) -> None:
        """`consumer` and `producer` are further settings of each client. The consumer reads committed records by
        default.

        Raises SettingError and, as `Producer.init_transactions`, TransactionError.
        """
        self._calls = ThreadCalls("ConsumeTransformProduce")
        self._closed = False
        self._closing = RLock()
        """Owned by the thread that closes. A second thread returns when everything is closed."""
        self._servers, self._transform = bootstrap_servers, transform
        self._properties = {**(producer or {}), "transactional.id": transactional_id}
        self._producer = self._open_producer()
        self._is_fenced = False
        """No transaction has been committed since the last ProducerFencedError."""
        read_committed = {"isolation.level": "read_committed"}
        own = {"group.id": group_id, "enable.auto.commit": False}
        try:
            self._consumer = Consumer(bootstrap_servers, {**read_committed, **(consumer or {}), **own})
        except BaseException:
            self._producer.close(0)
            raise
        self._consumer.subscribe(topics)

    def run(self, stop: Event | None = None) -> None:
        """Repeat `step` until `stop` is set, or without it until an exception. Raises as `step`."""
        while stop is None or not stop.is_set():
            self.step()

    def step(self, timeout_s: float = 1.0) -> int:
        """Poll once, and commit the output and the offsets. Returns the number of committed input records.

        Returns 0 if no records have arrived, and after a failed transaction. A failed transaction is aborted, and the
        next step reads its records again. The loss of partitions to another member also fails the transaction.

        Raises the exception of `transform` after an abort; ProducerFencedError where another producer uses the
        `transactional_id` repeatedly; other TransactionFatalError (for example, a missing ACL); and as
        `Consumer.poll`.
        """
        records = self._consumer.poll(timeout_s)
        if not records:
            return 0
        try:
            with self._producer.transaction():
                for output in self._transform(records):
                    self._send(output)
                self._producer.send_offsets_to_transaction(self._consumer)
        except TransactionAbortableError as error:
            _log.warning("%s; aborted the transaction: its %d records are read again", error, len(records))
            self._rewind(records)
            return 0
        except (ProducerFencedError, TransactionTimeoutError) as error:
            # The coordinator has aborted the transaction after its timeout, or its outcome is unknown. A new producer
            # with the same transactional id completes it, and the committed offsets show the outcome.
            self._renew(error)
            self._rewind(records)
            return 0
        except BaseException:
            self._rewind(records)
            raise
        self._is_fenced = False
        return len(records)

    def close(self) -> None:
        """Leave the group and close the clients.

        A concurrent `step` raises ClosedError, and its transaction is aborted.
        """
        with self._closing:
            if self._closed:
                return
            self._closed = True
            try:
                self._consumer.close()
            finally:
                self._producer.close()

    def _open_producer(self) -> Producer:
        producer = Producer(self._servers, self._properties)
        try:
            producer.init_transactions()
        except BaseException:
            producer.close(0)
            raise
        return producer

    def _send(self, output: Output) -> None:
        self._producer.send(
            output.topic,
            output.value,
            output.key,
            partition=output.partition,
            timestamp_ms=output.timestamp_ms,
            headers=output.headers,
        )

    def _renew(self, error: Exception) -> None:
        if isinstance(error, ProducerFencedError):
            if self._is_fenced:
                raise error
            self._is_fenced = True
        if self._closed:
            raise ClosedError("the ConsumeTransformProduce is closed") from error
        _log.warning("%s; continuing with a new producer", error)
        self._producer.close(0)
        self._producer = self._open_producer()

    def _rewind(self, records: Sequence[Record]) -> None:
        """Seek each partition of these records to its committed offset; if it has none, to its first record."""
        firsts: dict[TopicPartition, int] = {}
        for record in records:
            firsts.setdefault(TopicPartition(record.topic, record.partition), record.offset)
        ours = [partition for partition in firsts if partition in self._consumer.assignment()]
        for partition, committed in self._consumer.committed(*ours).items():
            self._consumer.seek(partition, firsts[partition] if committed is None else committed)
