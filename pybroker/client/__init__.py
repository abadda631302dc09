"""Clients of any Kafka: Admin today, Producer and Fetcher on the native engine.

`Admin` and `AsyncAdmin` speak the declared protocol in Python; records travel through `native/core/src/client` and are
touched in Python only one by one, when a program asks for them so. Knows no broker of ours.
"""

from pybroker.client.admin import Admin
from pybroker.client.async_admin import AsyncAdmin
from pybroker.client.errors import BrokerError, ClientError
from pybroker.client.topics import EARLIEST, LATEST, MAX_TIMESTAMP, NewTopic, TopicPartition

__all__ = [
    "EARLIEST",
    "LATEST",
    "MAX_TIMESTAMP",
    "Admin",
    "AsyncAdmin",
    "BrokerError",
    "ClientError",
    "NewTopic",
    "TopicPartition",
]
