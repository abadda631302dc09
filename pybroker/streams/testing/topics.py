"""The topics of a test driver: typed input and output (`TestInputTopic`, `TestOutputTopic`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from pybroker.streams.records import Headers, Record
from pybroker.streams.runtime.collector import ProducedRecord
from pybroker.streams.serdes import Serde
from pybroker.streams.windows import Duration, milliseconds


class TestInputTopic:
    """A source topic, into which a test pipes records."""

    __test__: ClassVar[bool] = False
    """pytest collects classes by their names, and this one is no test."""

    def __init__(
        self,
        pipe: Callable[[str, bytes | None, bytes | None, int, Headers], None],
        topic: str,
        serdes: tuple[Serde[Any], Serde[Any]],
        start_ms: int,
        auto_advance_ms: int,
    ) -> None:
        self.topic = topic
        self._pipe = pipe
        self._key_serde, self._value_serde = serdes
        self._time = start_ms
        self._advance = auto_advance_ms

    def pipe_input(self, key: Any, value: Any, timestamp: int | None = None, headers: Headers = ()) -> None:
        """Process one record.

        Args:
            key: the key, or None.
            value: the value; None is a tombstone.
            timestamp: milliseconds since the epoch; None for the time of the topic, which advances then.
            headers: the headers of the record.
        """
        if timestamp is None:
            timestamp = self._time
            self._time += self._advance
        self._pipe(self.topic, self._key_serde.to_bytes(key), self._value_serde.to_bytes(value), timestamp, headers)

    def pipe_key_values(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        """Process several records, each with the time of the topic."""
        for key, value in pairs:
            self.pipe_input(key, value)

    def advance_time(self, advance: Duration) -> None:
        """Move the time of the topic."""
        self._time += milliseconds("advance", advance)


class TestOutputTopic:
    """A topic that the topology writes. Reading a record removes it."""

    __test__: ClassVar[bool] = False

    def __init__(
        self, topic: str, records: deque[ProducedRecord], key_serde: Serde[Any], value_serde: Serde[Any]
    ) -> None:
        self.topic = topic
        self._records = records
        self._key_serde = key_serde
        self._value_serde = value_serde

    def __len__(self) -> int:
        return len(self._records)

    @property
    def is_empty(self) -> bool:
        """Whether all records have been read."""
        return not self._records

    def read_record(self) -> Record[Any, Any]:
        """Return and remove the next record.

        Raises:
            LookupError: all records have been read.
        """
        if not self._records:
            raise LookupError(f"topic {self.topic} has no more records")
        produced = self._records.popleft()
        timestamp = 0 if produced.timestamp is None else produced.timestamp
        key, value = self._key_serde.from_bytes(produced.key), self._value_serde.from_bytes(produced.value)
        return Record(key, value, timestamp, produced.headers)

    def read_key_value(self) -> tuple[Any, Any]:
        """Return and remove the next record as a key and a value."""
        record = self.read_record()
        return record.key, record.value

    def read_value(self) -> Any:
        """Return and remove the value of the next record."""
        return self.read_record().value

    def read_records(self) -> list[Record[Any, Any]]:
        """Return and remove all records."""
        return [self.read_record() for _ in range(len(self._records))]

    def read_key_values(self) -> list[tuple[Any, Any]]:
        """Return and remove all records as keys and values."""
        return [(record.key, record.value) for record in self.read_records()]

    def read_table(self) -> dict[Any, Any]:
        """Return and remove all records as a table: the last value of each key, deleted keys included as None."""
        return dict(self.read_key_values())
