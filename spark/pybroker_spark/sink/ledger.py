"""The ledger of a query: a topic of one partition, to which the attempts of its tasks append entries.

Owns how entries are appended, read and truncated, and how a target topic is marked; `pybroker_spark.sink.entries`
defines their content. An append returns when the entry is durable. A worker keeps its connections from batch to
batch.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from pybroker.client import (
    EARLIEST,
    LATEST,
    Admin,
    BrokerError,
    ClientError,
    Fetcher,
    NewTopic,
    Producer,
    TopicPartition,
)
from pybroker.client.errors import DeliveryError
from pybroker.client.settings import AdminSettings, FetcherSettings
from pybroker_spark.sink.entries import Entry, TopicMark, parse_entry, write_entry
from pybroker_spark.sink.errors import LedgerError

_log = logging.getLogger(__name__)

PREFIX: Final = "__spark_sink_"
"""The ledger of query q is the topic `__spark_sink_q`."""

_CONFIGS: Final = {
    # Completed batches must be known as long as the query may be restarted. Entries are deleted when a batch is done.
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "segment.bytes": "1048576",
}
UNKNOWN_TOPIC: Final = "UNKNOWN_TOPIC_OR_PARTITION"
_READ_SECONDS: Final = 60.0
_READING: Final = {"auto.offset.reset": "earliest", "fetch.max.wait.ms": "10", "fetch.min.bytes": "1"}

_kept: dict[tuple[str, tuple[tuple[str, str], ...], str], Ledger] = {}
"""The open ledger of this process, at most one."""


class Ledger:
    """One query's ledger; for one thread."""

    def __init__(self, bootstrap_servers: str, properties: Mapping[str, str], query_id: str) -> None:
        self.topic = f"{PREFIX}{query_id}"
        self.admin = Admin(bootstrap_servers, AdminSettings.acting(properties))
        """Also used by an attempt for requests to the cluster."""
        self._partition = TopicPartition(self.topic, 0)
        self._producer = Producer(bootstrap_servers, {**_without_batching(properties), "linger.ms": "0"})
        self._fetcher = Fetcher(bootstrap_servers, reading(properties))
        self._made = False

    def append(self, entry: Entry) -> int:
        """Append an entry, and return its offset. After ClientError the entry may be in the ledger or not."""
        self._make()
        return self._producer.send(self.topic, write_entry(entry), partition=0).result().offset

    def read(self, end: int | None = None) -> list[Entry]:
        """Return the entries below an offset, or all. Raises LedgerError, ClientError."""
        self._make()
        if end is None:
            end = self.admin.list_offsets({self._partition: LATEST})[self._partition].offset
        start = self.admin.list_offsets({self._partition: EARLIEST})[self._partition].offset
        entries: list[Entry] = []
        if start >= end:
            return entries
        self._fetcher.assign({self._partition: start})
        deadline = time.monotonic() + _READ_SECONDS
        while True:
            records = self._fetcher.poll(1.0)
            entries += [parse_entry(record.value) for record in records if record.offset < end]
            # Behind the last entry there may be a transaction marker, which is no record.
            if self._fetcher.positions()[self._partition] >= end:
                self._fetcher.assign([])  # no prefetching between two batches
                return entries
            if time.monotonic() > deadline:
                at = self._fetcher.positions()[self._partition]
                raise LedgerError(f"{self.topic}-0: nothing came at offset {at} within {_READ_SECONDS} s")

    def made(self) -> TopicPartition:
        """Create the ledger's topic where it is missing, and return its partition. Raises ClientError."""
        self._make()
        return self._partition

    def cut(self, offset: int) -> None:
        """Delete the entries below an offset. An error is ignored: the next batch deletes them."""
        try:
            self.admin.delete_records({self._partition: offset})
        except ClientError as error:
            _log.warning("%s: entries below offset %d stay: %s", self.topic, offset, error)

    def close(self) -> None:
        """Close every connection. An entry whose `append` failed and that is still in flight is dropped."""
        with self.admin, self._fetcher, suppress(DeliveryError):
            self._producer.close(0.0)

    def mark(self, topic: str) -> TopicMark:
        """Return the mark of a target topic, which the broker may create, as for any producer. Raises ClientError."""
        try:
            (found,) = self.admin.describe_topics([topic])
        except BrokerError as error:
            if error.code.name != UNKNOWN_TOPIC:
                raise
            self._producer.partitions(topic)
            found = self.admin.wait_for_leaders(topic)
        partitions = [TopicPartition(topic, partition.index) for partition in found.partitions]
        ends = self.admin.list_offsets(dict.fromkeys(partitions, LATEST))
        return TopicMark(found.topic_id.hex(), tuple(ends[partition].offset for partition in partitions))

    def _make(self) -> None:
        if self._made:
            return
        try:
            self.admin.describe_topics([self.topic])
        except BrokerError as error:
            if error.code.name != UNKNOWN_TOPIC:
                raise
            try:
                self.admin.create_topics([NewTopic(self.topic, 1, configs=_CONFIGS)])
            except BrokerError as refusal:
                if refusal.code.name != "TOPIC_ALREADY_EXISTS":
                    raise
        self.admin.wait_for_leaders(self.topic)
        self._made = True


def reading(properties: Mapping[str, str]) -> dict[str, str]:
    """Return a fetcher's properties for reading a ledger up to a known end."""
    # A Fetch at the end would be delayed at the broker, and delay the next read on the same connection.
    return {**FetcherSettings.acting(properties), **_READING}


def open_ledger(bootstrap_servers: str, properties: Mapping[str, str], query_id: str) -> Ledger:
    """Return the ledger of a query. The last one that was opened in this process stays open; for one thread."""
    key = (bootstrap_servers, tuple(sorted(properties.items())), query_id)
    if key not in _kept:
        close_ledger()
        _kept[key] = Ledger(bootstrap_servers, properties, query_id)
    return _kept[key]


def close_ledger() -> None:
    """Close the open ledger of this process."""
    while _kept:
        _kept.popitem()[1].close()


def _without_batching(properties: Mapping[str, str]) -> dict[str, str]:
    """Remove the batching settings of the rows' producer, which do not suit the ledger."""
    return {
        key: value for key, value in properties.items() if key not in ("linger.ms", "batch.size", "compression.type")
    }
