"""Where a task sends records: to a producer, or to the lists of the test driver."""

from __future__ import annotations

import abc

import msgspec

from pybroker.streams.records import Headers


class ProducedRecord(msgspec.Struct, frozen=True):
    """A record that a task sends."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int | None
    """Milliseconds since the epoch; None for the producer's current time."""
    headers: Headers = ()
    partition: int | None = None
    """None for the producer's partitioner."""


class RecordCollector(abc.ABC):
    """Sends the records of one task (`RecordCollector`)."""

    @abc.abstractmethod
    def send(self, record: ProducedRecord) -> None:
        """Send a record."""

    @abc.abstractmethod
    def partitions(self, topic: str) -> int:
        """Return the number of partitions of a topic, for partitioners."""
