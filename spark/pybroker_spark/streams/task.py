"""A task for one batch of records: its stores and numbers are those of the last batch, and are kept for the next.

Owns what a task must keep besides its stores, and the order of a batch. Must not know Spark, except for the interface
of a map state.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from pybroker.streams.errors import StreamsError
from pybroker.streams.operators.context import OperatorProcessor
from pybroker.streams.processor import PunctuationType
from pybroker.streams.records import Headers
from pybroker.streams.runtime.collector import ProducedRecord, RecordCollector
from pybroker.streams.runtime.commit_metadata import CommitMetadata
from pybroker.streams.runtime.punctuation import Schedule
from pybroker.streams.runtime.record_queue import RawRecord
from pybroker.streams.runtime.task import StreamTask
from pybroker.streams.state.buffers import TimeOrderedBuffer
from pybroker_spark.streams.plan import Plan
from pybroker_spark.streams.store import KeptChangelog, MapRows, StateDatabase


class KeptTask(msgspec.Struct):
    """What a task keeps between two batches, besides the rows of its stores."""

    partition_times: dict[str, int] = {}
    """The largest timestamp of each queue, in milliseconds."""
    numbers: dict[str, int] = {}
    """The numbers that processors store with a commit."""
    fields: dict[str, list[int]] = {}
    """The kept fields of processors and buffers, by the name of the node or store."""
    punctuators: list[int | None] = []
    """The next time of each punctuator of stream time, in the order of their creation; None for a cancelled one."""
    stores: dict[str, tuple[bytes, list[bytes]]] = {}
    """The numbers and the live prefixes of each store."""


class Collected(RecordCollector):
    """The records that a task has sent since the last call of `take`."""

    def __init__(self, partitions: Mapping[str, int]) -> None:
        self._partitions = partitions
        self._sent: list[ProducedRecord] = []

    def send(self, record: ProducedRecord) -> None:
        """Keep a record."""
        self._sent.append(record)

    def partitions(self, topic: str) -> int:
        """Return the number of partitions of a topic, for partitioners."""
        return self._partitions[topic]

    def take(self) -> list[ProducedRecord]:
        """Return and forget the records."""
        sent, self._sent = self._sent, []
        return sent


class BatchTask(StreamTask):
    """A task that exists for one batch. `run` is called once, between `begin` and `keep`."""

    def __init__(self, plan: Plan, subtopology: int, task_id: str, kept: KeptTask) -> None:
        self._sent = Collected(plan.partitions)
        self._kept = kept
        self._schedules: list[Schedule] = []
        self._began = False
        self._databases: dict[str, StateDatabase] = {}
        self._changelogs: dict[str, KeptChangelog] = {}
        nodes = plan.subtopologies[subtopology]
        super().__init__(plan.topology, nodes, plan.config, self._sent, _now_ms, task_id)
        self.handlers = plan.handlers

    def begin(self, rows: Mapping[str, MapRows]) -> None:
        """Open the stores in these map states, and continue where the last batch has ended.

        A store without a map state is in memory.
        """
        for name, store in self.stores.items():
            if name not in rows:
                continue
            if store.maps is None:
                self._changelogs[name] = KeptChangelog(rows[name])
                continue
            numbers, prefixes = self._kept.stores.get(name, (b"", []))
            if numbers:
                store.maps.numbers.unpack(numbers)
            database = self._databases[name] = StateDatabase(rows[name], prefixes)
            store.maps.attach(database, database.map)
        self.open_stores()
        for name, changelog in self._changelogs.items():
            for key, value, headers in changelog.records():
                self.stores[name].restore(key, value, -1, headers)
        for queue, partition_time in self._kept.partition_times.items():
            self.continue_from(queue, CommitMetadata(partition_time, self._kept.numbers))
        self.init_processors()
        self._began = True
        for name, fields in self._fields().items():
            for (owner, field), number in zip(fields, self._kept.fields.get(name, ()), strict=False):
                setattr(owner, field, number)

    def run(self, records: Iterable[RawRecord]) -> Iterator[ProducedRecord]:
        """Process the records of a batch, and return what the task sends. Caches are flushed at the end.

        A shuffle keeps no order. A queue needs the order of offsets, and a repeated batch must send the same records.
        """
        for record in sorted(records, key=lambda record: (record.topic, record.offset)):
            self.add_record(record.topic, record)
        while self.is_processable():
            self.process()
            self.punctuate(PunctuationType.STREAM_TIME)
            if self.commit_requested:
                self.commit_requested = False
                self.flush_caches()
            yield from self._sent.take()
        self.flush_caches()
        yield from self._sent.take()

    def keep(self) -> KeptTask:
        """Write the changes of all stores to their map states, and return what else the next batch needs."""
        self.commit_stores({})
        for changelog in self._changelogs.values():
            changelog.commit()
        return KeptTask(
            {name: queue.partition_time for name, queue in self.group.queues.items()},
            dict(self.stored_numbers()),
            {name: [getattr(owner, field) for owner, field in fields] for name, fields in self._fields().items()},
            [None if schedule.is_cancelled else schedule.next_ms for schedule in self._schedules],
            {name: (self._numbers(name), database.live_prefixes) for name, database in self._databases.items()},
        )

    def schedule(self, kind: PunctuationType, schedule: Schedule) -> None:
        """Add a punctuator of stream time, with the next time that the last batch has kept.

        Raises:
            StreamsError: the punctuator is of the wall clock, or it is not scheduled in `init`.
        """
        if kind is PunctuationType.WALL_CLOCK_TIME:
            raise StreamsError(
                f"node {schedule.node} schedules a punctuator of the wall clock: on Spark a task runs only when "
                "records arrive. Use PunctuationType.STREAM_TIME, or run the topology with KafkaStreams"
            )
        if self._began:
            raise StreamsError(
                f"node {schedule.node} schedules a punctuator outside of init: on Spark the next batch would not have "
                "it. Schedule it in init, or run the topology with KafkaStreams"
            )
        if len(self._schedules) < len(self._kept.punctuators):
            next_ms = self._kept.punctuators[len(self._schedules)]
            if next_ms is None:
                schedule.cancel()
            else:
                schedule.next_ms = next_ms
        self._schedules.append(schedule)
        super().schedule(kind, schedule)

    def log_change(
        self,
        store_name: str,
        key: bytes,
        value: bytes | None,
        timestamp: int | None,  # noqa: ARG002 - no buffer restores it
        headers: Headers,
    ) -> None:
        """Keep a change of a buffer. Other stores need no changelog: Spark's checkpoint has their rows."""
        changelog = self._changelogs.get(store_name)
        if changelog is not None:
            changelog.log(key, value, headers)

    def _numbers(self, store: str) -> bytes:
        maps = self.stores[store].maps
        assert maps is not None, "a store with a database has maps"
        return maps.numbers.pack()

    def _fields(self) -> dict[str, list[tuple[object, str]]]:
        """Return the fields to keep of each node and each buffer."""
        found = {
            running.name: list(running.processor.kept_fields())
            for running in self._processors
            if isinstance(running.processor, OperatorProcessor)
        }
        found |= {
            name: list(store.kept_fields())
            for name, store in self.stores.items()
            if isinstance(store, TimeOrderedBuffer)
        }
        return {name: fields for name, fields in found.items() if fields}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
