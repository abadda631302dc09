"""A task in memory whose operators form a graph, as the two sides of a join need it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pybroker.streams.operators.table import OperatorSupplier
from pybroker.streams.processor import Processor
from pybroker.streams.records import Headers, Record, RecordContext
from pybroker.streams.serdes import STRING
from tests.support.streams import MemoryContext, MemoryTask

Receiver = Callable[[Record[Any, Any]], None]
Line = tuple[Any, Any, int]


class JoinTask(MemoryTask):
    """A task with strings as default keys and values. Results that reach `collect` are in `results`."""

    def __init__(self) -> None:
        super().__init__()
        self.default_value_serde = STRING
        self.results: list[Record[Any, Any]] = []
        self._offset = 0

    def collect(self, record: Record[Any, Any]) -> None:
        self.results.append(record)

    def node(self, supplier: OperatorSupplier, *receivers: Receiver) -> Processor[Any, Any]:
        """Return an initialized processor that forwards to receivers, or to `collect`."""
        for builder in supplier.stores():
            self.add_store(builder)

        def receive(record: Record[Any, Any]) -> None:
            for receiver in receivers or (self.collect,):
                receiver(record)

        processor = supplier()
        processor.init(MemoryContext(self, "node", receive))
        return processor

    def pipe(self, node: Processor[Any, Any], line: Line, headers: Headers = (), topic: str = "input") -> None:
        """Process a record of a key, a value and a timestamp, as partition 0 of a topic has it."""
        key, value, timestamp = line
        self.advance_stream_time(timestamp)
        self.set_record_context(RecordContext(timestamp, self._offset, 0, topic, headers))
        self._offset += 1
        node.process(Record(key, value, timestamp, headers))
        self.set_record_context(None)

    def lines(self) -> list[Line]:
        """Return key, value and timestamp of the results since the last call."""
        lines = [(record.key, record.value, record.timestamp) for record in self.results]
        self.results.clear()
        return lines

    def play(self, nodes: Mapping[str, Processor[Any, Any]], *rows: tuple[str, Any, Any, int]) -> list[list[Line]]:
        """Process rows of a node's name, a key, a value and a timestamp. Returns the results of each row."""
        results = []
        for name, key, value, timestamp in rows:
            self.pipe(nodes[name], (key, value, timestamp), topic=name)
            results.append(self.lines())
        return results


def joined(key: Any, left: Any, right: Any) -> str:
    """Return a result that shows the arguments of a joiner with a key."""
    return f"{key}:{left}+{right}"


def values_joined(left: Any, right: Any) -> str | None:
    """Return a result that shows the arguments of a joiner; None if the left value is `x`."""
    return None if left == "x" else f"{left}+{right}"
