"""Runs a topology in micro-batches as the query on Spark does, with dicts in place of the state of Spark."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from pybroker.streams.runtime.collector import ProducedRecord
from pybroker.streams.runtime.record_queue import RawRecord
from pybroker.streams.topology.nodes import SinkNode
from pybroker.streams.topology.topology import Topology
from pybroker_spark.streams import settings
from pybroker_spark.streams.pickling import pickle_plan
from pybroker_spark.streams.plan import Plan, check
from pybroker_spark.streams.task import BatchTask, KeptTask
from tests.support.streams_steps import Step, decoded


class DictRows:
    """A map state in memory (`MapRows`), which counts its calls."""

    def __init__(self) -> None:
        self.rows: dict[bytes, bytes] = {}
        self.calls: dict[str, int] = defaultdict(int)

    def getValue(self, key: tuple[bytes]) -> tuple[bytes] | None:  # noqa: N802 - the name of Spark
        self.calls["get"] += 1
        value = self.rows.get(key[0])
        return None if value is None else (value,)

    def updateValue(self, key: tuple[bytes], value: tuple[bytes]) -> None:  # noqa: N802 - the name of Spark
        self.calls["update"] += 1
        self.rows[key[0]] = value[0]

    def removeKey(self, key: tuple[bytes]) -> None:  # noqa: N802 - the name of Spark
        self.calls["remove"] += 1
        self.rows.pop(key[0], None)

    def iterator(self) -> Iterator[tuple[tuple[bytes], tuple[bytes]]]:
        self.calls["iterate"] += 1
        return iter([((key,), (value,)) for key, value in self.rows.items()])


def sent(given: Step) -> ProducedRecord:
    """Return an input of a test (`streams_inputs.py`) as a record."""
    headers = tuple((name, decoded(value)) for name, value in given["headers"])
    return ProducedRecord(given["topic"], decoded(given["key"]), decoded(given["value"]), given["timestamp"], headers)


def lines(records: Iterable[ProducedRecord | RawRecord]) -> list[str]:
    """Return records as text: timestamp, key, value and headers."""
    return [f"{record.timestamp} {record.key!r} {record.value!r} {list(record.headers)}" for record in records]


def is_racy(plan: Plan) -> bool:
    """Return whether a record of a source topic reaches one task on several routes, so that Kafka fixes no order."""
    writers: dict[str, list[int]] = defaultdict(list)
    for number, nodes in enumerate(plan.subtopologies):
        for name in nodes:
            node = plan.topology.nodes[name]
            if isinstance(node, SinkNode) and isinstance(node.topic, str):
                writers[plan.name_of(node.topic)].append(number)

    def routes(number: int, after: frozenset[int]) -> list[str]:
        # A route that returns to a task begins after the record was there, so its order is fixed.
        found = []
        for topic in plan.sources(number):
            found += [] if writers[topic] else [topic]
            found += [
                start for writer in writers[topic] if writer not in after for start in routes(writer, after | {writer})
            ]
        return found

    every = range(len(plan.subtopologies))
    return any(len(set(its := routes(number, frozenset({number})))) < len(its) for number in every)


class _OnePartition(dict[str, int]):
    def __missing__(self, topic: str) -> int:
        return 1


class BatchRunner:
    """One partition of each topic. Every batch begins with new tasks, which have only what the last one has kept."""

    def __init__(self, topology: Topology, config: Mapping[str, Any]) -> None:
        check(topology)
        parsed = settings.parse({**config, "bootstrap.servers": "127.0.0.1:9"})
        plan = Plan(topology, parsed.config, parsed.handlers, _OnePartition(), topology.subtopologies())
        self.plan: Plan = pickle.loads(pickle_plan(plan))
        self.produced: dict[str, list[ProducedRecord]] = defaultdict(list)
        self.batches = 0
        self._logs: dict[str, list[RawRecord]] = defaultdict(list)
        self._read: dict[str, int] = defaultdict(int)
        self._rows: dict[str, DictRows] = defaultdict(DictRows)
        self._kept: dict[int, bytes] = {}

    def run(self, records: Sequence[ProducedRecord]) -> None:
        """Append records to topics, and run micro-batches until no task has unread records."""
        self._append(records)
        while self._batch():
            self.batches += 1

    def _append(self, records: Sequence[ProducedRecord]) -> None:
        for record in records:
            log = self._logs[record.topic]
            assert record.timestamp is not None
            position = record.topic, 0, len(log)
            log.append(RawRecord(*position, record.timestamp, record.key, record.value, record.headers))

    def _batch(self) -> bool:
        new: list[ProducedRecord] = []
        ran = False
        for number in range(len(self.plan.subtopologies)):
            unread = []
            for topic in self.plan.sources(number):
                unread += self._logs[topic][self._read[topic] :]
                self._read[topic] = len(self._logs[topic])
            if unread:
                ran = True
                new += self._run_task(number, unread)
        for record in new:
            self.produced[record.topic].append(record)
        self._append(new)
        return ran

    def _run_task(self, number: int, unread: Sequence[RawRecord]) -> list[ProducedRecord]:
        stateless = self.plan.is_stateless(number)
        packed = None if stateless else self._kept.get(number)
        kept = KeptTask() if packed is None else msgspec.msgpack.decode(packed, type=KeptTask)
        task = BatchTask(self.plan, number, f"{number}_0", kept)
        task.begin({store: self._rows[store] for store in self.plan.stores(number)})
        its = list(task.run(unread))
        self._kept[number] = msgspec.msgpack.encode(task.keep())
        task.close()
        return its
