"""The nodes of a subtopology as one program over Arrow batches.

Owns which subtopologies can run on batches: sources of JSON columns, filters and projections by expressions, merges and
sinks of JSON. A batch that the program refuses is processed record by record, with the same results. Does no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import msgspec

from pybroker.config.extras import install_command
from pybroker.streams import native
from pybroker.streams.columns.expressions import Column
from pybroker.streams.columns.kernels import Kernels, Schema
from pybroker.streams.columns.projection import Projection
from pybroker.streams.config import StreamsConfig
from pybroker.streams.errors import StreamsError
from pybroker.streams.operators.stateless import PassThrough, StreamFilter, StreamMapValues
from pybroker.streams.serdes import BYTES, STRING, Serde
from pybroker.streams.timestamps import fail_on_invalid_timestamp
from pybroker.streams.topology.nodes import ProcessorNode, SinkNode, SourceNode, node_serdes
from pybroker.streams.topology.topology import Topology

if TYPE_CHECKING:
    import pyarrow

READ_COLUMNS = ("key", "value", "timestamp", "headers", "offset")
"""The columns of a batch that a program receives."""


class NotColumnarError(StreamsError):
    """A node, a serde or a setting that needs records one by one."""


class RefusedBatchError(StreamsError):
    """A batch with a row that the program cannot process exactly. Nothing of the batch has been sent."""


class Output(msgspec.Struct, frozen=True):
    """Rows for one topic: a record batch with key, value, timestamp and headers."""

    topic: str
    rows: Any


class _Frame(msgspec.Struct, frozen=True):
    """Rows between two nodes: the batch without its values, the fields of the values, and which values are null."""

    envelope: Any
    fields: Mapping[str, Any]
    is_null: Any

    def filter(self, kept: Any) -> _Frame:
        fields = {name: array.filter(kept) for name, array in self.fields.items()}
        return _Frame(self.envelope.filter(kept), fields, self.is_null.filter(kept))


_Step = Callable[[_Frame, list[Output]], None]


class ColumnProgram:
    """The compiled nodes of one subtopology."""

    def __init__(self, topology: Topology, nodes: Sequence[str], config: StreamsConfig) -> None:
        """Compile the nodes.

        Raises:
            NotColumnarError: a node needs records one by one. The message names the node and the reason.
        """
        if find_spec("pyarrow") is None:
            raise NotColumnarError(f"pyarrow is not installed: run {install_command('columns')}")
        self._arrow: Any = import_module("pyarrow")
        self._compute: Any = import_module("pyarrow.compute")
        self._kernels = Kernels(self._arrow, self._compute)
        self._topology = topology
        self._config = config
        self._children: dict[str, list[str]] = {}
        for name in nodes:
            for parent in topology.nodes[name].parents:
                self._children.setdefault(parent, []).append(name)
        self._sources: dict[str, tuple[Serde[Any], Schema, Sequence[_Step]]] = {}
        for name in nodes:
            node = topology.nodes[name]
            if isinstance(node, SourceNode):
                self._add_source(node)

    # Compiling.

    def _add_source(self, node: SourceNode) -> None:
        extractor = node.timestamp_extractor or self._config.default_timestamp_extractor
        if extractor is not fail_on_invalid_timestamp:
            raise NotColumnarError(f"source {node.name} has a timestamp extractor")
        key_serde, value_serde = node_serdes(node, self._config.default_serdes)
        if key_serde not in (BYTES, STRING):
            raise NotColumnarError(f"source {node.name} has the key serde {key_serde.name}: expected string or bytes")
        if value_serde.columns is None:
            raise NotColumnarError(f"source {node.name} has the value serde {value_serde.name}: expected json_columns")
        schema = dict(value_serde.columns)
        steps = self._steps_below(node.name, key_serde, schema)
        if not node.topics:
            raise NotColumnarError(f"source {node.name} reads a pattern")
        for topic in node.topics:
            self._sources[topic] = (key_serde, schema, steps)

    def _steps_below(self, name: str, key_serde: Serde[Any], schema: Schema) -> list[_Step]:
        return [self._step(child, key_serde, schema) for child in self._children.get(name, ())]

    def _step(self, name: str, key_serde: Serde[Any], schema: Schema) -> _Step:
        node = self._topology.nodes[name]
        if isinstance(node, SinkNode):
            return self._sink(node, key_serde)
        assert isinstance(node, ProcessorNode), "a source has no parent"
        supplier = node.supplier
        if isinstance(supplier, PassThrough):
            return _in_turn(self._steps_below(name, key_serde, schema))
        if isinstance(supplier, StreamFilter) and isinstance(supplier.predicate, Column):
            return self._filter(supplier, schema, self._steps_below(name, key_serde, schema))
        if isinstance(supplier, StreamMapValues) and isinstance(supplier.mapper, Projection):
            projected, step = self._projection(supplier.mapper, schema)
            below = self._steps_below(name, key_serde, projected)
            return lambda frame, outputs: _run(below, step(frame), outputs)
        raise NotColumnarError(f"node {name} is not a filter or a projection by column expressions")

    def _filter(self, supplier: StreamFilter, schema: Schema, below: Sequence[_Step]) -> _Step:
        assert isinstance(supplier.predicate, Column), "the caller has checked it"
        kind, predicate = self._kernels.compile(supplier.predicate, schema)
        if kind is not bool:
            raise NotColumnarError(f"the predicate {supplier.predicate!r} is not a bool")

        def run(frame: _Frame, outputs: list[Output]) -> None:
            rows = len(frame.is_null)
            found = self._kernels.as_array(predicate(frame.fields), rows)
            # A predicate that is null is not true.
            kept = self._compute.fill_null(found, False)
            _run(below, frame.filter(self._compute.invert(kept) if supplier.negate else kept), outputs)

        return run

    def _projection(self, projection: Projection, schema: Schema) -> tuple[Schema, Callable[[_Frame], _Frame]]:
        compiled = {name: self._kernels.compile(column, schema) for name, column in projection.columns.items()}
        chosen = {name: kind for name, (kind, _) in compiled.items()}
        projected = {**schema, **chosen} if projection.keeps else chosen

        def run(frame: _Frame) -> _Frame:
            rows = len(frame.is_null)
            found = {name: self._kernels.as_array(kernel(frame.fields), rows) for name, (_, kernel) in compiled.items()}
            return _Frame(frame.envelope, {**frame.fields, **found} if projection.keeps else found, frame.is_null)

        return projected, run

    def _sink(self, node: SinkNode, key_serde: Serde[Any]) -> _Step:
        if not isinstance(node.topic, str) or node.partitioner is not None:
            raise NotColumnarError(f"sink {node.name} has a topic extractor or a partitioner")
        sink_key_serde, value_serde = node_serdes(node, self._config.default_serdes)
        if sink_key_serde is not key_serde:
            raise NotColumnarError(f"sink {node.name} has another key serde than the source")
        if value_serde.serialize is not msgspec.json.encode:
            raise NotColumnarError(f"sink {node.name} has the value serde {value_serde.name}: expected JSON")
        topic = node.topic

        def run(frame: _Frame, outputs: list[Output]) -> None:
            if len(frame.is_null):
                outputs.append(Output(topic, self._encoded(frame)))

        return run

    def _encoded(self, frame: _Frame) -> pyarrow.RecordBatch:
        values = self._arrow.StructArray.from_arrays(
            list(frame.fields.values()), list(frame.fields), mask=frame.is_null
        )
        encoded = self._arrow.array(native.encode_json_columns(values.__arrow_c_array__()))
        return frame.envelope.append_column("value", encoded)

    # Running.

    def run(self, topic: str, rows: pyarrow.RecordBatch) -> list[Output]:
        """Process the rows of a source topic, and return the rows to send.

        Args:
            topic: the source topic.
            rows: the columns of `READ_COLUMNS`.

        Raises:
            RefusedBatchError: a row has no valid JSON of the columns, an invalid key or timestamp, or a result that is
                not exact.
        """
        key_serde, schema, steps = self._sources[topic]
        outputs: list[Output] = []
        try:
            self._check(key_serde, rows)
            frame = self._decoded(schema, rows)
            _run(steps, frame, outputs)
        except (self._arrow.ArrowException, ValueError) as error:
            raise RefusedBatchError(f"{topic}: {error}") from error
        return outputs

    def _check(self, key_serde: Serde[Any], rows: pyarrow.RecordBatch) -> None:
        if key_serde is STRING:
            rows["key"].cast(self._arrow.string())  # Raises if a key is not UTF-8.
        first = self._compute.min(rows["timestamp"]).cast(self._arrow.int64()).as_py()
        if first is not None and first < 0:
            raise ValueError("a record has no timestamp")

    def _decoded(self, schema: Schema, rows: pyarrow.RecordBatch) -> _Frame:
        columns = [(name, kind.__name__) for name, kind in schema.items()]
        batch = rows.select(["value"]).__arrow_c_array__()
        values = self._arrow.array(native.decode_json_columns(batch, columns))
        fields = dict(zip(schema, values.flatten(), strict=True))
        return _Frame(rows.select(["key", "timestamp", "headers"]), fields, rows["value"].is_null())


def compiled(topology: Topology, config: StreamsConfig) -> Mapping[int, ColumnProgram]:
    """Return the program of each subtopology, by its number.

    Raises:
        NotColumnarError: a subtopology needs records one by one.
    """
    programs = {}
    for number, nodes in enumerate(topology.subtopologies()):
        if topology.is_global(nodes):
            raise NotColumnarError("the topology has global stores")
        programs[number] = ColumnProgram(topology, nodes, config)
    return programs


def uses_expressions(topology: Topology) -> bool:
    """Return whether a node of the topology filters or projects by column expressions."""
    suppliers = [node.supplier for node in topology.nodes.values() if isinstance(node, ProcessorNode)]
    return any(
        (isinstance(supplier, StreamFilter) and isinstance(supplier.predicate, Column))
        or (isinstance(supplier, StreamMapValues) and isinstance(supplier.mapper, Projection))
        for supplier in suppliers
    )


def _run(steps: Iterable[_Step], frame: _Frame, outputs: list[Output]) -> None:
    for step in steps:
        step(frame, outputs)


def _in_turn(steps: Sequence[_Step]) -> _Step:
    return lambda frame, outputs: _run(steps, frame, outputs)
