"""Clients of any Kafka: Producer, Consumer, Fetcher and Admin, blocking and over asyncio.

`Admin` and a consumer's membership speak the declared protocol in Python. Records travel through the native engine
(`native/client/src`) and are touched in Python only one by one, when a program asks for them so; by
`ColumnFetcher` and `Producer.send_columns` they come and go as Arrow columns. Knows no broker of ours.
"""

from pybroker.client.admin import Admin
from pybroker.client.async_admin import AsyncAdmin
from pybroker.client.async_consumer import AsyncConsumer
from pybroker.client.async_producer import AsyncProducer
from pybroker.client.columns import COLUMNS, ColumnFetcher, RecordColumns
from pybroker.client.consume_transform_produce import ConsumeTransformProduce, Output
from pybroker.client.consumer import Consumer
from pybroker.client.errors import (
    BrokerError,
    ClientError,
    CommitFailedError,
    DeserializationError,
    LogTruncationError,
    ProducerFencedError,
    SerializationError,
    TransactionAbortableError,
    TransactionAbortedError,
    TransactionError,
    TransactionFatalError,
    TransactionStateError,
    TransactionTimeoutError,
)
from pybroker.client.fetcher import AsyncFetcher, Fetcher, Record
from pybroker.client.groups import OffsetAndMetadata
from pybroker.client.listener import RebalanceListener
from pybroker.client.log_dirs import LogDirDescription, Replica, ReplicaInfo
from pybroker.client.metrics import MetricValue
from pybroker.client.native import KeyedStamps, LatencyHistogram, Tally
from pybroker.client.producer import Continuation, Delivery, Producer, RecordMetadata
from pybroker.client.topics import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    ListedOffset,
    NewTopic,
    Reassignment,
    TopicDescription,
    TopicPartition,
)
from pybroker.client.transaction.group_metadata import GroupMetadata
from pybroker.client.transaction.suspended import SuspendedTransaction
from pybroker.protocol.errors import ErrorCode

__all__ = [
    "COLUMNS",
    "EARLIEST",
    "LATEST",
    "MAX_TIMESTAMP",
    "Admin",
    "AsyncAdmin",
    "AsyncConsumer",
    "AsyncFetcher",
    "AsyncProducer",
    "BrokerError",
    "ClientError",
    "ColumnFetcher",
    "CommitFailedError",
    "ConsumeTransformProduce",
    "Consumer",
    "Continuation",
    "Delivery",
    "DeserializationError",
    "ErrorCode",
    "Fetcher",
    "GroupMetadata",
    "KeyedStamps",
    "LatencyHistogram",
    "ListedOffset",
    "LogDirDescription",
    "LogTruncationError",
    "MetricValue",
    "NewTopic",
    "OffsetAndMetadata",
    "Output",
    "Producer",
    "ProducerFencedError",
    "Reassignment",
    "RebalanceListener",
    "Record",
    "RecordColumns",
    "RecordMetadata",
    "Replica",
    "ReplicaInfo",
    "SerializationError",
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
]
