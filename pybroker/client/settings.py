"""The settings of connections, producers and fetchers: Kafka's keys, types, units and defaults.

The only home of the clients' defaults; the native side receives complete structures. Knows no broker.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from pybroker.client.errors import SettingError
from pybroker.client.servers import parse_servers

_SERIALIZERS = {
    "key.serializer",
    "value.serializer",
    "key.deserializer",
    "value.deserializer",
}
"""Set by every Java configuration file; bytes go in and come out here."""


_DURATION = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>[-+]?\d+)D)?"
    r"(?:T(?:(?P<hours>[-+]?\d+)H)?(?:(?P<minutes>[-+]?\d+)M)?(?:(?P<seconds>[-+]?\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)


def _key(name: str) -> str:
    return name.replace("_", ".")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings:
    """What every client of a cluster needs. A field's name is Kafka's key with underscores."""

    bootstrap_servers: str
    """`host:port` pairs, comma-separated, at least one; `from_properties` writes them all in the same form."""
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
            if key in known and value is not None:
                values[known[key].name] = _read(key, known[key].type, value)
        if "bootstrap_servers" not in values:
            raise SettingError("bootstrap.servers is not set: name at least one host:port")
        values["bootstrap_servers"] = ",".join(parse_servers(str(values["bootstrap_servers"])))
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
    """`earliest`, `latest`, `none`, or `by_duration:` and an ISO 8601 duration (KIP-1106)."""
    max_poll_records: int = 500
    queued_responses: int = 4
    """Received responses that wait for the caller while the next Fetch is under way. No key of Kafka's."""
    max_decompressed_bytes: int = 268_435_456
    """The largest a compressed batch may become. No key of Kafka's."""

    def __post_init__(self) -> None:
        """Refuse an isolation that is none: another word would read what was aborted. Raises SettingError."""
        if self.isolation_level not in ("read_uncommitted", "read_committed"):
            raise SettingError(f"isolation.level={self.isolation_level}: must be read_uncommitted or read_committed")

    @property
    def stops_at_new_leader(self) -> bool:
        """Whether a partition is read on only when its position was looked up at a new leader (KIP-320)."""
        return False

    @property
    def auto_offset_reset_ms(self) -> int | None:
        """With `by_duration`: how far back. Raises SettingError."""
        kind, _, duration = self.auto_offset_reset.partition(":")
        return parse_duration_ms(duration) if kind == "by_duration" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings(FetcherSettings):
    """A consumer's settings; Kafka 4's defaults."""

    group_id: str | None = None
    """None: partitions can be assigned, but no group joined and no offset committed."""
    group_instance_id: str | None = None
    """Set by a static member (KIP-345): its place in the group outlives a restart."""
    group_protocol: str = "classic"
    """`classic` or `consumer` (KIP-848)."""
    group_remote_assignor: str | None = None
    """With `consumer`: the broker's assignor to wish for, `uniform` or `range`."""
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    enable_auto_commit: bool | None = None
    """Unset: on with a `group.id`, off without."""
    auto_commit_interval_ms: int = 5_000
    allow_auto_create_topics: bool = True
    exclude_internal_topics: bool = True
    """Whether a pattern leaves Kafka's own topics out."""
    client_rack: str = ""

    @property
    def stops_at_new_leader(self) -> bool:
        """A consumer looks its positions up."""
        return True

    def check(self, given: Collection[str]) -> None:
        """Refuse what Kafka's consumer refuses; `given` are the keys that were set. Raises SettingError."""
        if self.group_protocol not in ("classic", "consumer"):
            raise SettingError(f"group.protocol={self.group_protocol}: must be classic or consumer")
        if self.group_protocol == "consumer":
            for key in ("heartbeat.interval.ms", "session.timeout.ms", "partition.assignment.strategy"):
                if key in given:
                    raise SettingError(f"{key} cannot be set when group.protocol=consumer: the broker decides it")
        elif "group.remote.assignor" in given:
            raise SettingError("group.remote.assignor cannot be set when group.protocol=classic")
        if self.group_id is None and (self.enable_auto_commit or self.group_instance_id is not None):
            raise SettingError("enable.auto.commit and group.instance.id need a group.id")

    @property
    def commits_itself(self) -> bool:
        """Whether offsets are committed without being asked."""
        return self.group_id is not None if self.enable_auto_commit is None else self.enable_auto_commit


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


def parse_duration_ms(text: str) -> int:
    """Read an ISO 8601 duration as Java's Duration does (`P2DT3H`, `PT1.5S`). Raises SettingError."""
    found = _DURATION.fullmatch(text.strip())
    if found is None or not any(found.groupdict().values()) or text.strip().endswith("T"):
        raise SettingError(f"{text!r} is no duration: must read like P1DT2H3M4S")
    days, hours, minutes, seconds = (float(found[name] or 0) for name in ("days", "hours", "minutes", "seconds"))
    milliseconds = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000
    if not abs(milliseconds) < 2**63:
        raise SettingError(f"{text!r} is no duration: longer than {2**63 - 1} ms")
    return round(milliseconds) * (-1 if found["sign"] == "-" else 1)


def read_properties(text: str) -> dict[str, str]:
    """Read a Java properties file's plain form: `key=value` lines, `#` or `!` before comments."""
    properties = {}
    for line in text.splitlines():
        stripped = line.strip()
        if stripped and stripped[0] not in "#!":
            key, _, value = stripped.partition("=")
            properties[key.strip()] = value.strip()
    return properties
