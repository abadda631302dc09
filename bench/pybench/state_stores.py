"""Measure puts and gets of a persistent key-value store of Kafka Streams: python -m pybench.state_stores.

A commit follows every 50,000 puts. Each figure is the whole path of a typed store without cache and changelog.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pybroker.streams.config import parse_config
from pybroker.streams.processor import Processor
from pybroker.streams.records import Record
from pybroker.streams.runtime.collector import ProducedRecord, RecordCollector
from pybroker.streams.runtime.task import StreamTask
from pybroker.streams.serdes import BYTES
from pybroker.streams.state.builders import key_value_store
from pybroker.streams.topology.topology import Topology

COMMIT_EVERY = 50_000
VALUE = b"v" * 20
CONFIG = parse_config({"default.key.serde": BYTES, "default.value.serde": BYTES}, "bench", 0)


class _Idle(Processor[Any, Any]):
    def process(self, record: Record[Any, Any]) -> None:
        """Do nothing: the benchmark uses the store itself."""


class _Unused(RecordCollector):
    def send(self, record: ProducedRecord) -> None:
        """Drop the record."""

    def partitions(self, topic: str) -> int:  # noqa: ARG002 - every topic has one partition
        """Return 1."""
        return 1


@contextmanager
def open_store(directory: Path | None) -> Iterator[Any]:
    """Yield a key-value store of bytes: in RocksDB under the directory of a task, or in memory."""
    topology = Topology()
    topology.add_source("in", "in").add_processor("node", _Idle, "in")
    topology.add_state_store(key_value_store("store", BYTES, BYTES).with_logging(False), "node")
    task = StreamTask(topology, list(topology.nodes), CONFIG, _Unused(), lambda: 0)
    task.state_directory = directory
    task.start()
    yield task.stores["store"]
    task.close()


def rate(count: int, step: Callable[[int], None]) -> float:
    """Return how many calls of a step there are in a second."""
    start = time.perf_counter()
    for number in range(count):
        step(number)
    return count / (time.perf_counter() - start)


def measure(store: Any, keys: int) -> dict[str, float]:
    """Return operations in a second: puts of new keys, gets, and a get followed by a put as a count does."""
    order = [b"key-%08d" % number for number in range(keys)]
    random.Random(1).shuffle(order)

    def put(number: int) -> None:
        store.put(order[number], VALUE)
        if number % COMMIT_EVERY == COMMIT_EVERY - 1:
            store.commit(number)

    def get(number: int) -> None:
        store.get(order[number])

    def update(number: int) -> None:
        store.get(order[number])
        put(number)

    figures = {"put": rate(keys, put)}
    random.Random(2).shuffle(order)
    figures["get"] = rate(keys, get)
    figures["get and put"] = rate(keys, update)
    start = time.perf_counter()
    rows = sum(1 for _ in store.all())
    figures["rows of one iteration"] = rows / (time.perf_counter() - start)
    return figures


def main() -> None:
    """Print the figures of a store in RocksDB and of one in memory."""
    parser = argparse.ArgumentParser(description="Measure persistent key-value stores of pybroker.streams.")
    parser.add_argument("--keys", type=int, default=1_000_000, help="the number of keys")
    keys = parser.parse_args().keys
    with tempfile.TemporaryDirectory(prefix="state-stores-") as directory:
        for name, place in (("rocksdb", Path(directory)), ("memory", None)):
            with open_store(place) as store:
                for what, figure in measure(store, keys).items():
                    print(f"{name:8} {what:22} {figure:12,.0f}/s")


if __name__ == "__main__":
    main()
