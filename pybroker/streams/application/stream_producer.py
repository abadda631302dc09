"""The producer of one stream thread: plain, or with one transaction for each commit (`StreamsProducer`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pybroker.client.administration.groups import OffsetAndMetadata
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.errors import ClientError
from pybroker.client.producing.producer import Delivery, Producer, RowsDelivery
from pybroker.client.transaction.group_metadata import GroupMetadata
from pybroker.streams.application.settings import ApplicationSettings
from pybroker.streams.runtime.collector import ProducedRecord


class StreamProducer:
    """Sends the records of all tasks of a thread. With exactly-once, records belong to the transaction of a commit."""

    def __init__(
        self,
        settings: ApplicationSettings,
        client_id: str,
        transactional_id: str | None,
        count_partitions: Callable[[str], int],
    ) -> None:
        self._count_partitions = count_partitions
        self._servers = settings.bootstrap_servers
        properties: dict[str, Any] = {**settings.clients.producer, "client.id": client_id}
        properties["unobserved.failures"] = "raise"
        if transactional_id is not None:
            properties["transactional.id"] = transactional_id
        self._properties = properties
        self._transactional = transactional_id is not None
        self._producer = self._open()
        self._in_transaction = False
        self._partitions: dict[str, int] = {}

    def _open(self) -> Producer[Any, Any]:
        producer: Producer[Any, Any] = Producer(self._servers, self._properties)
        if self._transactional:
            try:
                producer.init_transactions()
            except ClientError:
                producer.close(0.0)
                raise
        return producer

    def send(self, record: ProducedRecord, partition: int, on_delivery: Any) -> Delivery:
        """Send a record, and begin a transaction if none is open. `partition` -1 leaves it to the partitioner.

        Raises:
            ClientError: the record cannot be sent.
        """
        self._begin()
        return self._producer.send(
            record.topic,
            record.value,
            record.key,
            partition=partition,
            timestamp_ms=record.timestamp,
            headers=record.headers or None,
            on_delivery=on_delivery,
        )

    def send_columns(self, rows: Any, topic: str) -> RowsDelivery:
        """Send a record for each row of a record batch, and begin a transaction if none is open.

        Raises:
            ClientError: a row cannot be sent.
        """
        self._begin()
        return self._producer.send_columns(rows, topic=topic)

    def _begin(self) -> None:
        if self._transactional and not self._in_transaction:
            self._producer.begin_transaction()
            self._in_transaction = True

    def partitions(self, topic: str) -> int:
        """Return the number of partitions of a topic."""
        found = self._partitions.get(topic)
        if found is None:
            found = self._partitions[topic] = self._count_partitions(topic)
        return found

    def flush(self) -> None:
        """Wait until all records are acknowledged.

        Raises:
            ClientError: a record was not delivered.
        """
        self._producer.flush()

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupMetadata) -> None:
        """Commit the transaction together with the offsets of the group.

        Raises:
            ClientError: the transaction is aborted, or this producer is fenced.
        """
        self._begin()
        # The next owner of a task restores the records that are acknowledged. It may read the changelogs as soon as the
        # group has refused further offsets of this member, so all records are acknowledged before the offsets are sent.
        self._producer.flush()
        self._producer.send_offsets_to_transaction(offsets, group)
        self._producer.commit_transaction()
        self._in_transaction = False

    def reset(self) -> None:
        """Abort the open transaction with all its records, and continue with a producer that works."""
        if not self._transactional:
            return
        in_transaction, self._in_transaction = self._in_transaction, False
        try:
            if in_transaction:
                self._producer.abort_transaction()
        except ClientError:
            self._close(0.0)
            self._producer = self._open()

    def close(self, timeout_s: float) -> None:
        """Flush and close. An open transaction is aborted."""
        self._close(timeout_s)

    def _close(self, timeout_s: float) -> None:
        try:
            self._producer.close(timeout_s)
        except ClientError:
            if timeout_s > 0:
                raise
