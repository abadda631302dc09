"""Clients of any Kafka: Producer, Consumer, Fetcher and Admin, blocking and over asyncio.

`Admin` and the group membership of consumers encode requests in Python. Records pass through the native engine
(`native/client/src`); Python objects are made only where a program reads or sends records one by one.
`ColumnFetcher` and `send_columns` exchange Arrow columns. This package must not depend on pybroker's broker.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pybroker.client.administration.admin import Admin
    from pybroker.client.administration.async_admin import AsyncAdmin
    from pybroker.client.administration.groups import OffsetAndMetadata
    from pybroker.client.administration.log_dirs import LogDirDescription, Replica, ReplicaInfo
    from pybroker.client.administration.topics import (
        EARLIEST,
        LATEST,
        MAX_TIMESTAMP,
        ListedOffset,
        NewTopic,
        Reassignment,
        TopicDescription,
        TopicPartition,
    )
    from pybroker.client.column_sending import AsyncRowsDelivery
    from pybroker.client.consume_transform_produce import ConsumeTransformProduce, Output
    from pybroker.client.consuming.async_consumer import AsyncConsumer
    from pybroker.client.consuming.columns import COLUMNS, SENDABLE_COLUMNS, ColumnFetcher, RecordColumns
    from pybroker.client.consuming.consumer import Consumer
    from pybroker.client.consuming.fetcher import AsyncFetcher, Fetcher, Record
    from pybroker.client.consuming.listener import RebalanceListener
    from pybroker.client.errors import (
        ArgumentError,
        AuthenticationError,
        BrokerError,
        BufferFullError,
        ClientError,
        ClosedError,
        CommitFailedError,
        ConcurrentAccessError,
        ConnectionLostError,
        DeliveryError,
        DeserializationError,
        ForkedError,
        LoadUnavailableError,
        LogTruncationError,
        NoOffsetError,
        ProducerFencedError,
        RecordError,
        SerializationError,
        SettingError,
        TransactionAbortableError,
        TransactionAbortedError,
        TransactionError,
        TransactionFatalError,
        TransactionStateError,
        TransactionTimeoutError,
        UnknownBrokerError,
        UnreachableError,
        UnsendableError,
        UnservedApiError,
        UnsupportedEndpointTypeError,
    )
    from pybroker.client.metrics import MetricValue
    from pybroker.client.native import KeyedStamps, LatencyHistogram, LoadGenerator, Tally
    from pybroker.client.producing.async_producer import AsyncProducer
    from pybroker.client.producing.producer import Continuation, Delivery, Producer, RecordMetadata, RowsDelivery
    from pybroker.client.transaction.group_metadata import GroupMetadata
    from pybroker.client.transaction.suspended import SuspendedTransaction
    from pybroker.protocol.errors import ErrorCode

__all__ = [
    "COLUMNS",
    "EARLIEST",
    "LATEST",
    "MAX_TIMESTAMP",
    "SENDABLE_COLUMNS",
    "Admin",
    "ArgumentError",
    "AsyncAdmin",
    "AsyncConsumer",
    "AsyncFetcher",
    "AsyncProducer",
    "AsyncRowsDelivery",
    "AuthenticationError",
    "BrokerError",
    "BufferFullError",
    "ClientError",
    "ClosedError",
    "ColumnFetcher",
    "CommitFailedError",
    "ConcurrentAccessError",
    "ConnectionLostError",
    "ConsumeTransformProduce",
    "Consumer",
    "Continuation",
    "Delivery",
    "DeliveryError",
    "DeserializationError",
    "ErrorCode",
    "Fetcher",
    "ForkedError",
    "GroupMetadata",
    "KeyedStamps",
    "LatencyHistogram",
    "ListedOffset",
    "LoadGenerator",
    "LoadUnavailableError",
    "LogDirDescription",
    "LogTruncationError",
    "MetricValue",
    "NewTopic",
    "NoOffsetError",
    "OffsetAndMetadata",
    "Output",
    "Producer",
    "ProducerFencedError",
    "Reassignment",
    "RebalanceListener",
    "Record",
    "RecordColumns",
    "RecordError",
    "RecordMetadata",
    "Replica",
    "ReplicaInfo",
    "RowsDelivery",
    "SerializationError",
    "SettingError",
    "SuspendedTransaction",
    "Tally",
    "TopicDescription",
    "TopicPartition",
    "TransactionAbortableError",
    "TransactionAbortedError",
    "TransactionError",
    "TransactionFatalError",
    "TransactionStateError",
    "TransactionTimeoutError",
    "UnknownBrokerError",
    "UnreachableError",
    "UnsendableError",
    "UnservedApiError",
    "UnsupportedEndpointTypeError",
]

_HOMES = {
    "pybroker.client.administration.admin": ("Admin",),
    "pybroker.client.administration.async_admin": ("AsyncAdmin",),
    "pybroker.client.consuming.async_consumer": ("AsyncConsumer",),
    "pybroker.client.producing.async_producer": ("AsyncProducer",),
    "pybroker.client.column_sending": ("AsyncRowsDelivery",),
    "pybroker.client.consuming.columns": ("COLUMNS", "SENDABLE_COLUMNS", "ColumnFetcher", "RecordColumns"),
    "pybroker.client.consume_transform_produce": ("ConsumeTransformProduce", "Output"),
    "pybroker.client.consuming.consumer": ("Consumer",),
    "pybroker.client.errors": (
        "ArgumentError",
        "AuthenticationError",
        "BrokerError",
        "BufferFullError",
        "ClientError",
        "ClosedError",
        "CommitFailedError",
        "ConcurrentAccessError",
        "ConnectionLostError",
        "UnsupportedEndpointTypeError",
        "DeliveryError",
        "DeserializationError",
        "ForkedError",
        "LoadUnavailableError",
        "LogTruncationError",
        "NoOffsetError",
        "ProducerFencedError",
        "RecordError",
        "SerializationError",
        "SettingError",
        "TransactionAbortableError",
        "TransactionAbortedError",
        "TransactionError",
        "TransactionFatalError",
        "TransactionStateError",
        "TransactionTimeoutError",
        "UnknownBrokerError",
        "UnreachableError",
        "UnsendableError",
        "UnservedApiError",
    ),
    "pybroker.client.consuming.fetcher": ("AsyncFetcher", "Fetcher", "Record"),
    "pybroker.client.administration.groups": ("OffsetAndMetadata",),
    "pybroker.client.consuming.listener": ("RebalanceListener",),
    "pybroker.client.administration.log_dirs": ("LogDirDescription", "Replica", "ReplicaInfo"),
    "pybroker.client.metrics": ("MetricValue",),
    "pybroker.client.native": ("KeyedStamps", "LatencyHistogram", "LoadGenerator", "Tally"),
    "pybroker.client.producing.producer": ("Continuation", "Delivery", "Producer", "RecordMetadata", "RowsDelivery"),
    "pybroker.client.administration.topics": (
        "EARLIEST",
        "LATEST",
        "MAX_TIMESTAMP",
        "ListedOffset",
        "NewTopic",
        "Reassignment",
        "TopicDescription",
        "TopicPartition",
    ),
    "pybroker.client.transaction.group_metadata": ("GroupMetadata",),
    "pybroker.client.transaction.suspended": ("SuspendedTransaction",),
    "pybroker.protocol.errors": ("ErrorCode",),
}
"""Names of `__all__` by module. A module is imported on the first access to one of its names, so a broker, which needs
only connections and errors, does not import the others.
"""


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            value: object = getattr(import_module(home), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
