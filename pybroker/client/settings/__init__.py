"""The settings of clients: Kafka's keys, types, ranges, defaults and the rules between them.

Owns the clients' defaults and every judgement of a setting; the native side receives complete structures. Every key of
Kafka's clients is known here: it is honoured, or taken without an effect that a program could see, or refused by name.
Must not know a broker, a socket or a record.

    base              how properties become settings; unknown keys, keys of other clients
    keys              keys that hold one value only, because the client does no other
    security          how connections are encrypted, and who connects
    connection        what every client has beside that, and what an admin has beside it
    producer          producers
    consumer          fetchers and consumers
    offset_reset      `auto.offset.reset` and its durations
    librdkafka_names  what librdkafka calls some of them
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
