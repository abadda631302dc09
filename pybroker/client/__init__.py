"""Clients of any Kafka: Producer, Fetcher and Admin, blocking and over asyncio.

`Admin` speaks the declared protocol in Python. Records travel through the native engine (`native/core/src/client`) and
are touched in Python only one by one, when a program asks for them so. Knows no broker of ours.
"""

from pybroker.client.admin import Admin
from pybroker.client.async_admin import AsyncAdmin
from pybroker.client.errors import BrokerError, ClientError
from pybroker.client.fetcher import AsyncFetcher, Fetcher, Record
from pybroker.client.producer import AsyncProducer, Delivery, Producer, RecordMetadata
from pybroker.client.topics import EARLIEST, LATEST, MAX_TIMESTAMP, NewTopic, TopicPartition

__all__ = [
    "EARLIEST",
    "LATEST",
    "MAX_TIMESTAMP",
    "Admin",
    "AsyncAdmin",
    "AsyncFetcher",
    "AsyncProducer",
    "BrokerError",
    "ClientError",
    "Delivery",
    "Fetcher",
    "NewTopic",
    "Producer",
    "Record",
    "RecordMetadata",
    "TopicPartition",
]
