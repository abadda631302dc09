"""The settings of clients: Kafka's keys, types, ranges, defaults and the rules between them.

Owns the clients' defaults and all validation; the native side receives complete structures. Every key of Kafka's
clients is declared here. Each is honoured, or accepted where it has no visible effect, or rejected by name. Must not
know a broker, a socket or a record.

    base              parsing of properties; unknown keys, keys of other clients
    keys              keys with one allowed value, because the client supports no other
    security          encryption and authentication of connections
    connection        further settings of every client, and those of an admin
    producer          producers
    consumer          fetchers and consumers
    offset_reset      `auto.offset.reset` and its durations
    librdkafka_names  librdkafka's names of some keys
"""

from __future__ import annotations

from pybroker.client.settings.base import ClientSettings, shown
from pybroker.client.settings.connection import AdminSettings, ConnectionSettings
from pybroker.client.settings.consumer import ConsumerSettings, FetcherSettings
from pybroker.client.settings.offset_reset import parse_duration_ms
from pybroker.client.settings.producer import ProducerSettings
from pybroker.config.errors import PropertiesError
from pybroker.config.properties import read_properties

__all__ = [
    "AdminSettings",
    "ClientSettings",
    "ConnectionSettings",
    "ConsumerSettings",
    "FetcherSettings",
    "ProducerSettings",
    "PropertiesError",
    "parse_duration_ms",
    "read_properties",
    "shown",
]
