"""A load of pybroker clients during faults of their cluster, and an audit of their guarantees against the log.

A producer sends numbered records to every partition of a topic, and two members of a group read and commit them.
Exceptions are kept. `finish` reports lost, duplicated or reordered records.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from pybroker.client import EARLIEST, LATEST, Admin, Consumer, Fetcher, Producer, TopicPartition

MEMBERS = 2
_PAUSE_S = 0.002


class FailoverLoad:
    """`with FailoverLoad(servers, "t", 3) as load: ...; load.finish()`."""

    def __init__(self, servers: str, topic: str, partitions: int, settings: Mapping[str, str] | None = None) -> None:
        self.servers, self.topic = servers, topic
        self.partitions = [TopicPartition(topic, index) for index in range(partitions)]
        self.settings = dict(settings or {})
        self.errors: list[BaseException] = []
        self.sent = 0
        self.acknowledged = 0
        self.acknowledged_at = time.monotonic()
        self.generations: list[list[int]] = [[] for _ in range(MEMBERS)]
        """The generations of each member, without repetitions."""
        self.commits = 0
        self._read: list[list[tuple[int, int]]] = [[] for _ in range(MEMBERS)]
        """The (partition, offset) pairs that each member read, in order."""
        self._ended = threading.Event()
        self._has_read: list[bool] = [False] * MEMBERS
        self._all_read = threading.Event()
        self._leaving = threading.Barrier(MEMBERS)
        """Members leave only after all have read their partitions: a leaving member triggers a rebalance."""
        self._ends: dict[TopicPartition, int] = {}
        self.metrics: dict[str, float] = {}
        members = [threading.Thread(target=self._consume, args=(number,)) for number in range(MEMBERS)]
        self._threads = [threading.Thread(target=self._produce), *members]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._ends = self._ends or dict.fromkeys(self.partitions, 0)
        for thread in self._threads:
            thread.join(60)

    def is_going(self, records: int) -> bool:
        """Whether `records` are acknowledged, and the group is stable and commits. Raises a client's first error."""
        if self.errors:
            raise self.errors[0]
        together = all(self.generations) and len({generations[-1] for generations in self.generations}) == 1
        return self.acknowledged >= records and self.commits > 0 and together

    def finish(self) -> None:
        """Stop sending, wait for the readers, and assert that no record is lost, duplicated, reordered or unread."""
        self._ended.set()
        self._threads[0].join(120)
        with Admin(self.servers) as admin:
            self._ends = {p: it.offset for p, it in admin.list_offsets(dict.fromkeys(self.partitions, LATEST)).items()}
        for thread in self._threads:
            thread.join(120)
            assert not thread.is_alive(), f"a client does not come to its end: {self._ends}"
        assert not self.errors, self.errors
        assert self.acknowledged == self.sent
        written = self._log()
        numbers = Counter(number for found in written.values() for number in found)
        missing = self.sent - len(numbers)
        doubled = [number for number, times in numbers.items() if times > 1]
        assert (missing, doubled) == (0, []), f"{missing} records of {self.sent} lost, doubled: {doubled[:10]}"
        assert all(found == sorted(found) for found in written.values()), "records are in another order than sent"
        read = Counter(where for reads in self._read for where in reads)
        unread = [(p.partition, o) for p, end in self._ends.items() for o in range(end) if (p.partition, o) not in read]
        assert not unread, f"{len(unread)} records were not read, the first: {unread[0]}"

    def read_again(self) -> int:
        """Return how many records were consumed again."""
        return sum(times - 1 for times in Counter(where for reads in self._read for where in reads).values())

    def _produce(self) -> None:
        try:
            with Producer(self.servers, {"linger.ms": "1", **self.settings}) as producer:
                while not self._ended.is_set():
                    for partition in self.partitions:
                        sent = producer.send(self.topic, str(self.sent).encode(), partition=partition.partition)
                        self.sent += 1
                    sent.result(120)
                    self.acknowledged_at = time.monotonic()
                    self.acknowledged = self.sent - len(self.partitions)
                    self._ended.wait(_PAUSE_S)
                producer.flush(120)
                self.acknowledged = self.sent
                self.metrics = producer.metrics()
        except BaseException as error:  # noqa: BLE001 (the test's own thread raises it)
            self.errors.append(error)

    def _consume(self, number: int) -> None:
        settings = {
            "group.id": self.topic,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
            **self.settings,
        }
        try:
            with Consumer(self.servers, settings) as consumer:
                consumer.subscribe([self.topic])
                while not self._all_read.is_set():
                    records = consumer.poll(0.2)
                    generation = consumer.membership()[1]
                    seen = self.generations[number]
                    if generation >= 0 and (not seen or seen[-1] != generation):
                        seen.append(generation)
                    self._read[number] += [(record.partition, record.offset) for record in records]
                    if records:
                        consumer.commit()
                        self.commits += 1
                    self._has_read[number] = self._has_read_its_own(consumer)
                    if all(self._has_read):
                        self._all_read.set()
                self._leaving.wait(60)
        except BaseException as error:  # noqa: BLE001 (as above)
            self.errors.append(error)
            self._all_read.set()
            self._leaving.abort()

    def _has_read_its_own(self, consumer: Consumer) -> bool:
        if not self._ends:
            return False
        return all(consumer.position(partition) >= self._ends[partition] for partition in consumer.assignment())

    def _log(self) -> dict[int, list[int]]:
        """Return the numbers in the log of each partition, in log order."""
        found: dict[int, list[int]] = {partition.partition: [] for partition in self.partitions}
        with Fetcher(self.servers) as fetcher:
            fetcher.assign(dict.fromkeys(self.partitions, EARLIEST))
            left = sum(self._ends.values())
            while left > 0:
                records = fetcher.poll(60, max_records=10_000)
                assert records, f"{left} records of the log do not come"
                for record in records:
                    found[record.partition].append(int(record.value or b""))
                left -= len(records)
        return found
