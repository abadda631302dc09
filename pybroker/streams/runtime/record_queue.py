"""The records that a task has fetched and not processed, by partition, and the choice of the next one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from pybroker.client.java.priority_queue import PriorityQueue
from pybroker.streams.records import Headers
from pybroker.streams.timestamps import ConsumedRecord, TimestampExtractor


class RawRecord(msgspec.Struct, frozen=True):
    """A record as it is fetched from a partition."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class RecordQueue:
    """The records of one partition (`RecordQueue`). The first of them is deserialized and has its timestamp."""

    def __init__(
        self,
        deserialize: Callable[[RawRecord], ConsumedRecord | None],
        extractor: TimestampExtractor,
        drop: Callable[[RawRecord, str], None],
    ) -> None:
        self._raw: deque[RawRecord] = deque()
        self._deserialize = deserialize
        self._extractor = extractor
        self._drop = drop
        self.head: ConsumedRecord | None = None
        """The next record."""
        self.head_timestamp = -1
        """The extracted timestamp of the next record, in milliseconds."""
        self.head_raw: RawRecord | None = None
        """The next record as bytes."""
        self.taken_raw: RawRecord | None = None
        """The last record that `poll` returned, as bytes."""
        self.partition_time = -1
        """The largest timestamp that the task has taken from this partition, in milliseconds."""

    def __len__(self) -> int:
        return len(self._raw) + (self.head is not None)

    def add(self, record: RawRecord) -> None:
        """Append a record."""
        self._raw.append(record)
        self._advance()

    def poll(self) -> tuple[ConsumedRecord, int]:
        """Remove and return the next record and its timestamp."""
        head, timestamp = self.head, self.head_timestamp
        assert head is not None, "an empty queue is not polled"
        self.head, self.taken_raw = None, self.head_raw
        self.partition_time = max(self.partition_time, timestamp)
        self._advance()
        return head, timestamp

    def _advance(self) -> None:
        """Find the next record. Records that cannot be deserialized or have no timestamp are skipped."""
        while self.head is None and self._raw:
            raw = self._raw.popleft()
            record = self._deserialize(raw)
            if record is None:
                continue
            timestamp = self._extractor(record, self.partition_time)
            if timestamp < 0:
                self._drop(raw, f"negative extracted timestamp {timestamp}")
                continue
            self.head, self.head_raw, self.head_timestamp = record, raw, timestamp


class PartitionGroup:
    """The queues of all partitions of a task. The record with the smallest timestamp is next (`PartitionGroup`)."""

    def __init__(self, queues: Mapping[Any, RecordQueue]) -> None:
        self.queues = dict(queues)
        self.stream_time = -1
        """The largest timestamp that was taken from any queue, in milliseconds."""
        self._ready: PriorityQueue[RecordQueue] = PriorityQueue(lambda queue: queue.head_timestamp)

    def add(self, source: Any, record: RawRecord) -> None:
        """Append a record to the queue of its partition."""
        queue = self.queues[source]
        was_empty = queue.head is None
        queue.add(record)
        if was_empty and queue.head is not None:
            self._ready.offer(queue)

    @property
    def is_empty(self) -> bool:
        """Whether no partition has a record."""
        return not self._ready

    def set_partition_time(self, source: Any, time: int) -> None:
        """Set the time of a partition and of the group to what they were when the offset was committed."""
        self.queues[source].partition_time = time
        self.stream_time = max(self.stream_time, time)

    @property
    def has_empty_queue(self) -> bool:
        """Whether a partition has no record, so that a record with a smaller timestamp can still arrive there."""
        return any(queue.head is None for queue in self.queues.values())

    def poll(self) -> tuple[RecordQueue, ConsumedRecord, int]:
        """Remove and return the next record, with its queue and its timestamp."""
        queue = self._ready.poll()
        record, timestamp = queue.poll()
        if queue.head is not None:
            self._ready.offer(queue)
        self.stream_time = max(self.stream_time, timestamp)
        return queue, record, timestamp
