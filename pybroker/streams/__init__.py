"""Kafka Streams in Python: topologies of streams, tables and state, and the runners of a topology.

A topology is data. It is described, optimised and named as in Apache Kafka. `KafkaStreams` runs it in this process
against a cluster, and `pybroker.streams.testing` runs it in a test.
"""

from __future__ import annotations

from pybroker.streams.application.async_kafka_streams import AsyncKafkaStreams
from pybroker.streams.application.changelog_reader import RestoreProgress
from pybroker.streams.application.kafka_streams import KafkaStreams
from pybroker.streams.application.metadata import (
    NOT_AVAILABLE,
    UNAVAILABLE,
    HostInfo,
    KeyQueryMetadata,
    StreamsMetadata,
)
from pybroker.streams.application.queries import QueryableStore
from pybroker.streams.application.states import State, UncaughtResponse
from pybroker.streams.columns.expressions import Column, col, lit
from pybroker.streams.columns.projection import Projection, select, with_columns
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
    DirectoryLockedError,
    InvalidStateStoreError,
    MissingSourceTopicError,
    ProcessorStateError,
    SerializationError,
    StreamsError,
    TopologyError,
)
from pybroker.streams.exception_handlers import (
    CONTINUE,
    FAIL,
    ErrorContext,
    Response,
    dead_letter,
    log_and_continue,
    log_and_fail,
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
    arrow,
    json,
    json_columns,
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
    "CONTINUE",
    "FAIL",
    "FLOAT64",
    "INT32",
    "INT64",
    "JSON",
    "MSGPACK",
    "NOT_AVAILABLE",
    "STRING",
    "UNAVAILABLE",
    "AsyncKafkaStreams",
    "BranchedKStream",
    "BufferConfig",
    "Cancellable",
    "Change",
    "CogroupedKStream",
    "Column",
    "DirectoryLockedError",
    "EmitStrategy",
    "ErrorContext",
    "FixedKeyProcessor",
    "GlobalKTable",
    "Headers",
    "HostInfo",
    "InvalidStateStoreError",
    "JoinWindows",
    "KGroupedStream",
    "KGroupedTable",
    "KStream",
    "KTable",
    "KafkaStreams",
    "KeyQueryMetadata",
    "MissingSourceTopicError",
    "Processor",
    "ProcessorContext",
    "ProcessorStateError",
    "Projection",
    "PunctuationType",
    "QueryableStore",
    "Record",
    "RecordContext",
    "RecordMetadata",
    "Response",
    "RestoreProgress",
    "Serde",
    "SerializationError",
    "SessionWindows",
    "SlidingWindows",
    "State",
    "StreamsBuilder",
    "StreamsError",
    "StreamsMetadata",
    "Suppressed",
    "TimeWindows",
    "Topology",
    "TopologyError",
    "UncaughtResponse",
    "UnlimitedWindows",
    "ValueAndTimestamp",
    "ValueTransformer",
    "Window",
    "Windowed",
    "WindowedKStream",
    "arrow",
    "col",
    "dead_letter",
    "json",
    "json_columns",
    "lit",
    "log_and_continue",
    "log_and_fail",
    "msgpack",
    "select",
    "session_windowed",
    "time_windowed",
    "with_columns",
]
