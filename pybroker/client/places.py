"""The partitions that a consumer has, and where it stands in each.

Owns what was taken from the fetcher and not yet handed out, so that a position is always that of the next record that
the program gets. Knows no group: who gives and takes partitions is the consumer's matter.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pybroker.client import native
from pybroker.client.errors import ClientError
from pybroker.client.groups import OffsetAndMetadata, Offsets
from pybroker.client.topics import TopicPartition


@dataclass(slots=True)
class _Place:
    paused: bool = False
    begun: bool = False
    """Whether the fetcher knows where to begin."""


class Places:
    """One consumer's partitions over one fetcher."""

    def __init__(self, fetcher: native.Fetcher) -> None:
        self._fetcher = fetcher
        self._places: dict[TopicPartition, _Place] = {}
        self._rest: list[native.Record] = []
        """Records of one partition."""
        self._failure: ClientError | None = None
        """Met behind records that are handed out first."""

    def __contains__(self, partition: object) -> bool:
        return partition in self._places

    def __bool__(self) -> bool:
        return bool(self._places)

    def all(self) -> frozenset[TopicPartition]:
        """Every partition."""
        return frozenset(self._places)

    def paused(self) -> frozenset[TopicPartition]:
        """Those that are not handed out."""
        return frozenset(partition for partition, place in self._places.items() if place.paused)

    def unbegun(self) -> list[TopicPartition]:
        """Those that nobody has said yet where to begin in."""
        return [partition for partition, place in self._places.items() if not place.begun]

    def add(self, partitions: Collection[TopicPartition]) -> None:
        """Have these too; nothing is read of them before `begin`."""
        for partition in partitions:
            self._places.setdefault(partition, _Place())

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """Have these no longer."""
        self._fetcher.remove([(p.topic, p.partition) for p in partitions])
        for partition in partitions:
            self._places.pop(partition, None)
        if self._rest and _partition_of(self._rest[0]) not in self._places:
            self._rest = []

    def begin(self, starts: Mapping[TopicPartition, int]) -> None:
        """Read from these offsets on (or `EARLIEST`, `LATEST`); partitions that are gone meanwhile are passed over."""
        starts = {partition: offset for partition, offset in starts.items() if partition in self._places}
        self._fetcher.add([(p.topic, p.partition, offset) for p, offset in starts.items()])
        for partition in starts:
            place = self._places[partition]
            place.begun = True
            if place.paused:
                self._fetcher.pause(partition.topic, partition.partition, True)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on elsewhere. Raises ClientError for a partition that is not assigned."""
        if self._place(partition).begun:
            self._return_rest(partition)
            self._fetcher.seek(partition.topic, partition.partition, offset)
        else:
            self.begin({partition: offset})

    def pause(self, partition: TopicPartition, paused: bool) -> None:
        """Hand out nothing of a partition, or go on. Raises ClientError for one that is not assigned."""
        place = self._place(partition)
        place.paused = paused
        if place.begun:
            if paused:
                self._return_rest(partition)
            self._fetcher.pause(partition.topic, partition.partition, paused)

    def position(self, partition: TopicPartition) -> int | None:
        """The offset of the next record that is handed out; None until it is known. Raises ClientError, as `seek`."""
        self._place(partition)
        if self._rest and _partition_of(self._rest[0]) == partition:
            return self._rest[0].offset
        found = self._fetcher.position(partition.topic, partition.partition)
        return None if found is None or found < 0 else found

    def positions(self) -> Offsets:
        """All positions that are known, as they are committed."""
        found = ((partition, self.position(partition)) for partition in self._places)
        return {partition: OffsetAndMetadata(at) for partition, at in found if at is not None}

    def take(self, most: int) -> list[native.Record]:
        """Up to so many records of those that have arrived. Raises what the fetcher met."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        records, self._rest = self._rest[:most], self._rest[most:]
        while len(records) < most:
            try:
                taken = self._fetcher.take(0.0)
            except ClientError as error:
                if not records:
                    raise
                self._failure = error
                break
            if taken is None:
                break
            room = most - len(records)
            records += taken[2][:room]
            self._rest = taken[2][room:]
        return records

    def count(self, stamped: bool = False) -> tuple[int, int] | None:
        """All that has arrived, as (records, bytes of keys and values), without making objects of it."""
        counted, records, size = self._fetcher.count(0.0, stamped), 0, 0
        while counted is not None:
            records, size = records + counted[0], size + counted[1]
            counted = self._fetcher.count(0.0, stamped)
        return (records, size) if records else None

    def _place(self, partition: TopicPartition) -> _Place:
        if partition not in self._places:
            raise ClientError(f"{partition} is not assigned")
        return self._places[partition]

    def _return_rest(self, partition: TopicPartition) -> None:
        """What was taken of a partition and not handed out is read again."""
        if self._rest and _partition_of(self._rest[0]) == partition:
            self._fetcher.seek(partition.topic, partition.partition, self._rest[0].offset)
            self._rest = []


def _partition_of(record: native.Record) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)
