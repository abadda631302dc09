"""The partitions that are assigned to a consumer, and its position in each.

Owns the records that were taken from the fetcher but not returned to the program. So a position is always the offset of
the next record to return. Must not know the group: the consumer decides which partitions are assigned.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from pybroker.client import native
from pybroker.client.administration.groups import OffsetAndMetadata, Offsets
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.consuming.deserializers import Deserializers
from pybroker.client.consuming.record_columns import RecordColumns
from pybroker.client.errors import ClientError, DeserializationError, NewLeaderError

_BYTES = Deserializers()


@dataclass(slots=True)
class _PartitionPosition:
    paused: bool = False
    begun: bool = False
    """Whether the fetcher has a start offset."""
    start: OffsetAndMetadata | None = None
    """The position before the fetcher starts; it is validated before records are read (KIP-320)."""
    epoch: int = -1
    """Leader epoch of the record before the position, where the fetcher does not know it."""


class SubscriptionState:
    """One consumer's partitions over one fetcher."""

    def __init__(
        self, fetcher: native.Fetcher, notify: Callable[[], None], deserializers: Deserializers = _BYTES
    ) -> None:
        """`notify` is called when a partition needs a new start offset."""
        self._fetcher, self._notify, self._deserializers = fetcher, notify, deserializers
        self._positions: dict[TopicPartition, _PartitionPosition] = {}
        self._rest: native.Received | None = None
        """The records of one partition that were taken from the fetcher; None when no record is left."""
        self._ahead: deque[native.Record[Any, Any]] = deque()
        """Records that iteration returns one by one, before the records of `_rest`."""
        self._given: native.Record[Any, Any] | None = None
        """The last record that iteration returned; valid while `_ahead` is not empty."""
        self._reader: native.ColumnReader | None = None
        """The engine's reader of columns, after the first `take_columns`."""
        self._columns_left: tuple[TopicPartition, int] | None = None
        """Partition and offset of the rows that the reader has taken but not returned."""
        self._failure: ClientError | None = None
        """An error of the fetcher, raised after the records before it are returned."""

    def __contains__(self, partition: object) -> bool:
        return partition in self._positions

    def __bool__(self) -> bool:
        return bool(self._positions)

    def all(self) -> frozenset[TopicPartition]:
        """Return all partitions."""
        return frozenset(self._positions)

    def paused(self) -> frozenset[TopicPartition]:
        """Return the paused partitions."""
        return frozenset(partition for partition, state in self._positions.items() if state.paused)

    def reads(self) -> bool:
        """Whether the fetcher reads any partition."""
        return any(state.begun and not state.paused for state in self._positions.values())

    def unbegun(self) -> list[TopicPartition]:
        """Return the partitions without a start offset, which are not read before `begin`."""
        return [partition for partition, state in self._positions.items() if not state.begun]

    def unchecked(self) -> Offsets:
        """Return the positions of unstarted partitions whose offset must be validated against the log."""
        return {p: state.start for p, state in self._positions.items() if not state.begun and state.start is not None}

    def add(self, partitions: Collection[TopicPartition]) -> None:
        """Add partitions. They are not read before `begin`."""
        for partition in partitions:
            self._positions.setdefault(partition, _PartitionPosition())

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """Remove partitions, with their records that were fetched but not returned."""
        self._fetcher.remove([(p.topic, p.partition) for p in partitions])
        for partition in partitions:
            self._positions.pop(partition, None)
            self._forget_taken(partition)

    def begin(self, starts: Offsets) -> None:
        """Start to read at these offsets (or `EARLIEST`, `LATEST`). Removed partitions are ignored."""
        starts = {partition: start for partition, start in starts.items() if partition in self._positions}
        self._fetcher.add([(p.topic, p.partition, start.offset) for p, start in starts.items()])
        for partition, start in starts.items():
            state = self._positions[partition]
            state.begun, state.start, state.epoch = True, None, start.leader_epoch
            if state.paused:
                self._fetcher.pause(partition.topic, partition.partition, True)

    def seek(self, partition: TopicPartition, to: OffsetAndMetadata) -> None:
        """Set the position of a partition. Raises ClientError for a partition that is not assigned."""
        state = self._assigned(partition)
        if to.leader_epoch >= 0:
            self._stop(partition, to)
        elif state.begun:
            self._return_rest(partition)
            self._fetcher.seek(partition.topic, partition.partition, to.offset)
            state.epoch = -1
        else:
            self.begin({partition: to})

    def pause(self, partition: TopicPartition, paused: bool) -> None:
        """Pause or resume a partition. Raises ClientError for a partition that is not assigned."""
        state = self._assigned(partition)
        state.paused = paused
        if state.begun:
            if paused:
                self._return_rest(partition)
            self._fetcher.pause(partition.topic, partition.partition, paused)

    def position(self, partition: TopicPartition) -> int | None:
        """Return the offset of the next record to return; None until it is known. Raises ClientError, as `seek`."""
        if not self._assigned(partition).begun:
            return None
        if (taken := self._first_taken(partition)) is not None:
            return taken
        found = self._fetcher.position(partition.topic, partition.partition)
        return None if found is None or found < 0 else found

    def positions(self) -> Offsets:
        """Return all known positions, as they are committed."""
        found = [(partition, self.position(partition)) for partition in self._positions]
        return {p: OffsetAndMetadata(at, leader_epoch=self._epoch(p)) for p, at in found if at is not None}

    def take(self, most: int) -> list[native.Record[Any, Any]]:
        """Return at most `most` of the records that have arrived. Raises the fetcher's error."""
        self._check_columns_left()
        if self._ahead:
            return [self._ahead.popleft() for _ in range(min(most, len(self._ahead)))]
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        records = self.take_rest(most)
        while len(records) < most and not self._rest:
            try:
                taken = self._fetcher.take(0.0)
            except NewLeaderError as error:
                self._look_up(error)
                continue
            except ClientError as error:
                if not records:
                    raise
                self._failure = error
                break
            if taken is None:
                break
            self._rest = taken if len(taken) else None
            try:
                records += self.take_rest(most - len(records))
            except DeserializationError:
                if not records:
                    raise
        return records

    def take_rest(self, most: int) -> list[native.Record[Any, Any]]:
        """Return at most `most` of the records already taken from the fetcher. Raises DeserializationError."""
        if self._ahead:
            return self.take(most)
        rest = self._rest
        if rest is None:
            return []
        given = rest.take(most)
        records, failure = self._deserializers.read(given)
        if failure is not None:
            rest.put_back(len(given) - len(records))
            if not records:
                raise failure
        if not len(rest):
            self._rest = None
        elif records:
            self._positions[TopicPartition(rest.topic, rest.partition)].epoch = records[-1].leader_epoch
        return records

    def format(self, layout: native.RecordFormat, most: int, max_bytes: int) -> native.FormattedRecords | None:
        """Return at most `most` records of one partition as text; None if no record has arrived.

        Raises the fetcher's error, and ClientError while records that iteration has buffered are not returned.
        """
        if self._ahead:
            raise ClientError("records buffered for iteration cannot be written as text: iterate, or format")
        self._check_columns_left()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        while self._rest is None:
            try:
                taken = self._fetcher.take(0.0)
            except NewLeaderError as error:
                self._look_up(error)
                continue
            if taken is None:
                return None
            self._rest = taken if len(taken) else None
        rest = self._rest
        formatted = rest.format(layout, most, max_bytes)
        if not len(rest):
            self._rest = None
        elif formatted.records:
            self._positions[TopicPartition(rest.topic, rest.partition)].epoch = formatted.leader_epoch
        return formatted

    def take_columns(self, names: list[str], max_rows: int, max_bytes: int) -> RecordColumns | None:
        """Return the next records of one partition as columns; None if no record has arrived.

        Raises the fetcher's error, and ClientError while records that were taken as records are not returned.
        """
        if self._ahead or self._rest is not None:
            raise ClientError("records buffered for poll cannot be read as columns: poll until none is left")
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        self._reader = self._reader or native.ColumnReader(self._fetcher)
        while True:
            try:
                taken = self._reader.take(0.0, names, end=None, max_rows=max_rows, max_bytes=max_bytes)
            except NewLeaderError as error:
                self._look_up(error)
                continue
            if taken is None:
                return None
            partition = TopicPartition(taken.topic, taken.partition)
            read_to = self._fetcher.position(taken.topic, taken.partition)
            has_left = read_to is not None and read_to > taken.next_offset
            self._columns_left = (partition, taken.next_offset) if has_left else None
            if has_left:
                self._positions[partition].epoch = -1
            if taken.rows:
                return RecordColumns(taken)

    def _check_columns_left(self) -> None:
        if self._columns_left is not None:
            raise ClientError("rows buffered for take_columns cannot be read as records: call take_columns, or seek")

    def take_ahead(self, most: int) -> bool:
        """Prepare at most `most` records for `next_ahead`.

        Returns whether a record is ready. Raises the fetcher's error.
        """
        if not self._ahead:
            self._given = None
            self._ahead.extend(self.take(most))
        return bool(self._ahead)

    def next_ahead(self) -> native.Record[Any, Any] | None:
        """Return one record and advance the position. Returns None when `take_ahead` must be called."""
        ahead = self._ahead
        if not ahead:
            return None
        self._given = record = ahead.popleft()
        return record

    def count(self, stamped: bool = False) -> tuple[int, int] | None:
        """Count the arrived records, as (records, bytes of keys and values), without creating Python objects."""
        self._check_columns_left()
        records, size = 0, 0
        while True:
            try:
                counted = self._fetcher.count(0.0, stamped)
            except NewLeaderError as error:
                self._look_up(error)
                continue
            if counted is None:
                return (records, size) if records else None
            records, size = records + counted[0], size + counted[1]

    def _assigned(self, partition: TopicPartition) -> _PartitionPosition:
        if partition not in self._positions:
            raise ClientError(f"{partition} is not assigned")
        return self._positions[partition]

    def _epoch(self, partition: TopicPartition) -> int:
        """Return the leader epoch of the record before the position; -1 where it is unknown."""
        state = self._positions[partition]
        if any(_partition_of(record) == partition for record in self._ahead):
            given = self._given
            return given.leader_epoch if given is not None and _partition_of(given) == partition else -1
        if self._rest_of(partition) is not None or (self._columns_left and self._columns_left[0] == partition):
            return state.epoch
        epoch = self._fetcher.epoch(partition.topic, partition.partition)
        return state.epoch if epoch < 0 else epoch

    def _look_up(self, new_leader: NewLeaderError) -> None:
        """Stop reading the partition of the error until its position is validated against the new leader's log.

        The fetcher raises the error after it has returned all records before the position.
        """
        partition = TopicPartition(*new_leader.partition)
        at = self.position(partition) if partition in self._positions else None
        if at is not None:
            self._stop(partition, OffsetAndMetadata(at, leader_epoch=self._epoch(partition)))
            self._notify()

    def _stop(self, partition: TopicPartition, at: OffsetAndMetadata) -> None:
        self._fetcher.remove([(partition.topic, partition.partition)])
        self._forget_taken(partition)
        state = self._positions[partition]
        state.begun, state.start = False, at

    def _return_rest(self, partition: TopicPartition) -> None:
        """Drop the records of a partition that were taken but not returned; the fetcher reads them again."""
        if (taken := self._first_taken(partition)) is not None:
            self._fetcher.seek(partition.topic, partition.partition, taken)
            self._forget_taken(partition)

    def _first_taken(self, partition: TopicPartition) -> int | None:
        """Return the offset of a partition's first record that was taken but not returned."""
        for record in self._ahead:
            if _partition_of(record) == partition:
                return record.offset
        if self._columns_left is not None and self._columns_left[0] == partition:
            return self._columns_left[1]
        rest = self._rest_of(partition)
        return None if rest is None else rest.next_offset

    def _rest_of(self, partition: TopicPartition) -> native.Received | None:
        """Return the records of a partition in `_rest`, which follow the records prepared for iteration."""
        rest = self._rest
        if rest is None or (rest.topic, rest.partition) != (partition.topic, partition.partition):
            return None
        return rest

    def _forget_taken(self, partition: TopicPartition) -> None:
        if self._ahead:
            self._ahead = deque(record for record in self._ahead if _partition_of(record) != partition)
        if self._rest_of(partition) is not None:
            self._rest = None
        if self._columns_left is not None and self._columns_left[0] == partition and self._reader is not None:
            # A seek makes the reader drop its rows, also for a partition that the fetcher no longer reads.
            self._reader.seek(partition.topic, partition.partition, self._columns_left[1])
            self._columns_left = None


def _partition_of(record: native.Record[Any, Any]) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)
