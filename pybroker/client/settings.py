"""The settings of connections, producers and fetchers: Kafka's keys, types, units and defaults.

The only home of the clients' defaults; the native side receives complete structures. Knows no broker.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from pybroker.client.errors import SettingError

_SERIALIZERS = {
    "key.serializer",
    "value.serializer",
    "key.deserializer",
    "value.deserializer",
}
"""Set by every Java configuration file; bytes go in and come out here."""


def _key(name: str) -> str:
    return name.replace("_", ".")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """What every client of a cluster needs. A field's name is Kafka's key with underscores."""

    bootstrap_servers: str
    """`host:port` pairs, comma-separated, at least one."""
    client_id: str = "pybroker"
    request_timeout_ms: int = 30_000
    socket_connection_setup_timeout_ms: int = 10_000
    metadata_max_age_ms: int = 300_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    retry_backoff_ms: int = 100
    send_buffer_bytes: int = 131_072
    """SO_SNDBUF; -1 leaves the system's."""
    receive_buffer_bytes: int = 65_536
    """SO_RCVBUF; -1 leaves the system's."""
    default_api_timeout_ms: int = 60_000

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> Self:
        """Read Kafka's keys (values as text or as numbers); keys that this client does not know are left alone.

        Raises SettingError for a value that cannot be read.
        """
        known = {_key(f.name): f for f in dataclasses.fields(cls)}
        values = {}
        for key, value in properties.items():
            if key in known:
                values[known[key].name] = _read(key, known[key].type, value)
        if "bootstrap_servers" not in values:
            raise SettingError("bootstrap.servers is not set: name at least one host:port")
        return cls(**values)

    @classmethod
    def unknown_keys(cls, properties: Mapping[str, Any]) -> list[str]:
        """The keys of `properties` that have no effect here, sorted."""
        known = {_key(f.name) for f in dataclasses.fields(cls)} | _SERIALIZERS
        return sorted(key for key in properties if key not in known)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings(ConnectionSettings):
    """A producer's settings; Kafka 4's defaults."""

    acks: str = "all"
    """`0`, `1` or `all` (`-1`)."""
    batch_size: int = 16_384
    linger_ms: float = 5
    buffer_memory: int = 33_554_432
    max_block_ms: int = 60_000
    delivery_timeout_ms: int = 120_000
    max_request_size: int = 1_048_576
    max_in_flight_requests_per_connection: int = 5
    enable_idempotence: bool | None = None
    """Unset: on, unless `acks` or `max.in.flight.requests.per.connection` forbid it."""
    compression_type: str = "none"
    """`none`, `gzip`, `snappy`, `lz4` or `zstd`."""
    compression_level: int | None = None
    """Unset: the codec's own default."""

    def acks_number(self) -> int:
        """`acks` as Produce carries it: 0, 1 or -1. Raises SettingError."""
        numbers = {"0": 0, "1": 1, "all": -1, "-1": -1}
        if str(self.acks) not in numbers:
            raise SettingError(f"acks={self.acks}: must be 0, 1 or all")
        return numbers[str(self.acks)]

    def is_idempotent(self) -> bool:
        """Whether batches carry a producer id."""
        if self.enable_idempotence is not None:
            return self.enable_idempotence
        return self.acks_number() == -1 and self.max_in_flight_requests_per_connection <= 5


@dataclass(frozen=True, slots=True, kw_only=True)
class FetcherSettings(ConnectionSettings):
    """A fetcher's settings; Kafka 4's defaults for consumers."""

    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 52_428_800
    max_partition_fetch_bytes: int = 1_048_576
    fetch_max_wait_ms: int = 500
    check_crcs: bool = True
    isolation_level: str = "read_uncommitted"
    auto_offset_reset: str = "latest"
    """`earliest`, `latest` or `none`."""
    max_poll_records: int = 500
    queued_responses: int = 4
    """Received responses that wait for the caller while the next Fetch is under way. No key of Kafka's."""
    max_decompressed_bytes: int = 268_435_456
    """The largest a compressed batch may become. No key of Kafka's."""


Settings = TypeVar("Settings", bound=ConnectionSettings)


def _read(key: str, type_name: object, value: Any) -> Any:
    kind = str(type_name)
    text = str(value).strip()
    try:
        if kind.startswith("int"):
            return None if text in ("", "None") and "None" in kind else int(text)
        if kind.startswith("float"):
            return float(text)
        if kind.startswith("bool"):
            return {"true": True, "false": False}[text.lower()]
    except (ValueError, KeyError):
        raise SettingError(
            f"{key}={value}: must be {'true or false' if kind.startswith('bool') else 'a number'}"
        ) from None
    return text


def read_properties(text: str) -> dict[str, str]:
    """Read a Java properties file's plain form: `key=value` lines, `#` or `!` before comments."""
    properties = {}
    for line in text.splitlines():
        stripped = line.strip()
        if stripped and stripped[0] not in "#!":
            key, _, value = stripped.partition("=")
            properties[key.strip()] = value.strip()
    return properties
