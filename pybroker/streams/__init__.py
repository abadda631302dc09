"""Kafka Streams in Python: topologies of streams, tables and state, and a driver that runs them in a test.

A topology is data. It is described, optimised and named as in Apache Kafka. `pybroker.streams.testing` runs it.
"""

from __future__ import annotations

from pybroker.streams.dsl.branched import BranchedKStream
from pybroker.streams.dsl.builder import StreamsBuilder
from pybroker.streams.dsl.streams import (
    CogroupedKStream,
    GlobalKTable,
    KGroupedStream,
    KGroupedTable,
    KStream,
    KTable,
    WindowedKStream,
)
from pybroker.streams.errors import (
    InvalidStateStoreError,
    ProcessorStateError,
    SerializationError,
    StreamsError,
    TopologyError,
)
from pybroker.streams.operators.table_transform_values import ValueTransformer
from pybroker.streams.processor import (
    Cancellable,
    FixedKeyProcessor,
    Processor,
    ProcessorContext,
    PunctuationType,
)
from pybroker.streams.records import Change, Headers, Record, RecordContext, RecordMetadata, ValueAndTimestamp
from pybroker.streams.serdes import (
    BYTES,
    FLOAT64,
    INT32,
    INT64,
    JSON,
    MSGPACK,
    STRING,
    Serde,
    json,
    msgpack,
    session_windowed,
    time_windowed,
)
from pybroker.streams.suppressed import BufferConfig, Suppressed
from pybroker.streams.topology.topology import Topology
from pybroker.streams.windows import (
    EmitStrategy,
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
    Window,
    Windowed,
)

__all__ = [
    "BYTES",
    "FLOAT64",
    "INT32",
    "INT64",
    "JSON",
    "MSGPACK",
    "STRING",
    "BranchedKStream",
    "BufferConfig",
    "Cancellable",
    "Change",
    "CogroupedKStream",
    "EmitStrategy",
    "FixedKeyProcessor",
    "GlobalKTable",
    "Headers",
    "InvalidStateStoreError",
    "JoinWindows",
    "KGroupedStream",
    "KGroupedTable",
    "KStream",
    "KTable",
    "Processor",
    "ProcessorContext",
    "ProcessorStateError",
    "PunctuationType",
    "Record",
    "RecordContext",
    "RecordMetadata",
    "Serde",
    "SerializationError",
    "SessionWindows",
    "SlidingWindows",
    "StreamsBuilder",
    "StreamsError",
    "Suppressed",
    "TimeWindows",
    "Topology",
    "TopologyError",
    "UnlimitedWindows",
    "ValueAndTimestamp",
    "ValueTransformer",
    "Window",
    "Windowed",
    "WindowedKStream",
    "json",
    "msgpack",
    "session_windowed",
    "time_windowed",
]
