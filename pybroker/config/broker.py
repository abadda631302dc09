"""BrokerConfig: the complete, validated configuration of one node.

Owns the rules between keys, such as which key applies where another is absent. Must not read files other than the
properties file.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pybroker.config.connections import ListenerConnections, build_connections, check_per_ip
from pybroker.config.endpoint import (
    Listener,
    build_listeners,
    parse_endpoints,
    parse_protocols,
    with_controllers,
)
from pybroker.config.errors import ConfigError, RefusedError
from pybroker.config.key import parse_list
from pybroker.config.keys.admin_keys import AdminKeys, parse_address
from pybroker.config.keys.consumer_group_keys import ConsumerGroupKeys
from pybroker.config.keys.group_keys import GroupKeys
from pybroker.config.keys.idle_keys import IdleKeys
from pybroker.config.keys.log_keys import LogKeys
from pybroker.config.keys.network_keys import NetworkKeys
from pybroker.config.keys.node_keys import NodeKeys
from pybroker.config.keys.oauth_keys import OAuthKeys
from pybroker.config.keys.opentelemetry_keys import ExportSettings, OpenTelemetryKeys, build_export
from pybroker.config.keys.quorum_keys import QuorumKeys
from pybroker.config.keys.security_keys import SecurityKeys
from pybroker.config.keys.streams_group_keys import StreamsGroupKeys
from pybroker.config.keys.telemetry_keys import TelemetryKeys
from pybroker.config.keys.token_keys import TokenKeys
from pybroker.config.keys.topic_keys import TopicKeys
from pybroker.config.keys.transaction_keys import TransactionKeys
from pybroker.config.properties import parse_overrides, read_properties
from pybroker.config.quorum import QuorumVoter, parse_bootstrap_servers, parse_voters
from pybroker.config.roles import check_required, check_roles
from pybroker.config.security.outbound import (
    BETWEEN_BROKERS,
    TO_CONTROLLERS,
    OutboundSecurity,
    build_client_properties,
    check_mechanism,
)
from pybroker.config.security.sasl import ListenerSasl, build_sasl
from pybroker.config.security.tls import ListenerTls, build_tls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_HOUR_MS = 3_600_000
_CLEANER_THREAD_BYTES = 1024**2
_PER_LISTENER = ("listener.name.", ".congestion.control")
_MAP = "listener.security.protocol.map"
ID_NAMES = frozenset({"node.id", "broker.id"})
"""Keys of the node id."""
_OF_MECHANISM = re.compile(
    r"(?:plain|scram-sha-256|scram-sha-512|oauthbearer|gssapi)\."
    r"(?:sasl\.jaas\.config|connections\.max\.reauth\.ms|sasl\.(?:server|login)\.callback\.handler\.class)"
)


class BrokerConfig(
    NodeKeys,
    QuorumKeys,
    NetworkKeys,
    LogKeys,
    TopicKeys,
    TransactionKeys,
    GroupKeys,
    ConsumerGroupKeys,
    StreamsGroupKeys,
    SecurityKeys,
    OAuthKeys,
    TokenKeys,
    TelemetryKeys,
    AdminKeys,
    OpenTelemetryKeys,
    IdleKeys,
):
    """The settings of one node. Values are attributes: `log.segment.bytes` is `log_segment_bytes`."""

    endpoints: tuple[Listener, ...]
    """Every listener of the node, including those for controllers."""
    security_protocols: Mapping[str, str]
    """The security protocol of each listener name, also of names that only other nodes use."""
    _congestion_controls: Mapping[str, str | None]
    """By listener name; the empty name applies to all others."""
    quorum_voters: tuple[QuorumVoter, ...]
    """The voters sorted by id; empty where they are not configured."""
    quorum_bootstrap_servers: tuple[tuple[str, int], ...]
    """The addresses of controllers; empty where they are not configured."""
    of_listeners: Mapping[str, str]
    """Given values of single listeners, by full name: `listener.name.NAME.KEY`."""
    of_mechanisms: Mapping[str, str]
    """Given values of single SASL mechanisms for all listeners: `plain.sasl.jaas.config`."""
    id_names: frozenset[str]
    """Which of `node.id` and `broker.id` were given; each applies where the other is absent."""
    dynamic_own: Mapping[str, str]
    """Dynamic configs of this broker since its start, by Kafka's names (KIP-226)."""
    dynamic_default: Mapping[str, str]
    """Dynamic configs of all brokers; a broker's own config overrides them."""
    custom_own: Mapping[str, str]
    """Configs of this broker in the metadata log whose keys are not declared. They have no effect."""
    custom_default: Mapping[str, str]
    """Undeclared configs of all brokers."""

    def __init__(self, given: Mapping[str, str]) -> None:
        """Parse and validate the texts in `given`. Raises ConfigError for the first invalid one."""
        self.take(given)
        self.check_between_keys()

    def take(self, given: Mapping[str, str]) -> None:
        """Set the values in `given` and those derived from them.

        Raises ConfigError. `between_keys` does the remaining checks.
        """
        super().__init__(_with_node_id(given))
        if self.broker_id not in (-1, self.node_id):
            raise RefusedError("node.id", self.node_id, "You must set `node.id` to the same value as `broker.id`.")
        values = self.__dict__
        values.update(
            broker_id=self.node_id,
            id_names=ID_NAMES & given.keys(),
            dynamic_own={},
            dynamic_default={},
            custom_own={},
            custom_default={},
            quorum_voters=parse_voters(self.controller_quorum_voters),
            quorum_bootstrap_servers=parse_bootstrap_servers(self.controller_quorum_bootstrap_servers),
        )
        check_required(self)
        values["_congestion_controls"] = self._congestion_control(given)
        self._take_listeners(_MAP in self.given)
        self._check_parts()

    def overlaid(self, texts: Mapping[str, str]) -> Self:
        """Return a copy with these values, listeners included. Raises ConfigError."""
        made = super().overlaid(texts)
        if "listeners" in texts or _MAP in texts:
            made._take_listeners(_MAP in self.given or _MAP in texts)
        return made

    def _take_listeners(self, map_is_given: bool) -> None:
        endpoints = parse_endpoints("listeners", self.listeners)
        advertised = parse_endpoints("advertised.listeners", self.advertised_listeners)
        protocols = parse_protocols(parse_list(self.listener_security_protocol_map))
        if not map_is_given:
            protocols = with_controllers(protocols, endpoints, self.controller_listener_names)
        values = self.__dict__
        values["security_protocols"] = protocols
        values["endpoints"] = build_listeners(
            endpoints, advertised, protocols, self.controller_listener_names, self._congestion_controls
        )
        check_roles(self, tuple(endpoints), tuple(advertised))

    def _congestion_control(self, given: Mapping[str, str]) -> dict[str, str | None]:
        congestion_control = {"": self.congestion_control}
        prefix, suffix = _PER_LISTENER
        for name in self.unknown:
            if name.startswith(prefix) and name.endswith(suffix):
                listener = name[len(prefix) : -len(suffix)].upper()
                congestion_control[listener] = given[name].strip() or None
        self.__dict__["of_listeners"] = {name: given[name] for name in self.unknown if name.startswith(prefix)}
        self.__dict__["of_mechanisms"] = {name: given[name] for name in self.unknown if _OF_MECHANISM.fullmatch(name)}
        taken = self.of_listeners.keys() | self.of_mechanisms.keys()
        self.__dict__["unknown"] = tuple(name for name in self.unknown if name not in taken)
        return congestion_control

    @classmethod
    def from_properties(cls, path: Path | None, overrides: Iterable[str] = ()) -> BrokerConfig:
        """Read a properties file (None: defaults), overridden by `key=value` texts. Raises ConfigError."""
        given = {} if path is None else read_properties(path)
        given.update(parse_overrides(overrides))
        return cls(given)

    def check_between_keys(self) -> None:
        """Check the rules between values, also after a dynamic change. Raises ConfigError."""
        for check in self.between_keys():
            check()

    def between_keys(self) -> tuple[Callable[[], object], ...]:
        """Return the checks of rules between values; each raises ConfigError independently."""
        return (
            self._check_retention,
            self._check_requests,
            self._check_cleaner,
            self._check_replication,
            self._check_consumer_groups,
            self._check_streams_groups,
            self._check_admin,
            self.sasl_of_listeners,
            lambda: check_per_ip(self.max_connections_per_ip, self.max_connections_per_ip_overrides),
            self.connections_of_listeners,
            self.tls_of_listeners,
            self._check_ways,
        )

    def _check_ways(self) -> None:
        offered = self.sasl_of_listeners()
        for way in self._ways():
            check_mechanism(way, self._security_texts(), offered)
            build_client_properties(way, self._security_texts())

    def _check_parts(self) -> None:
        for name, text in self.of_listeners.items():
            if name.endswith(".principal.builder.class"):
                raise ConfigError(name, text, "no value: set principal.builder.class, which applies to all listeners")
        if not self.log_directories:
            raise ConfigError("log.dirs", self.given.get("log.dirs", ""), "at least one directory")
        if len(set(self.log_directories)) != len(self.log_directories):
            raise ConfigError("log.dirs", self.given.get("log.dirs", ""), "each directory once")

    def _check_retention(self) -> None:
        if self.retention_ms == 0:
            spoken = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
            name = next(name for name in spoken if getattr(self, self.keys[name].attribute) is not None)
            raise ConfigError(name, 0, "-1 for unlimited, or a whole number of at least 1")

    def _check_requests(self) -> None:
        if 0 < self.queued_max_request_bytes < self.socket_request_max_bytes:
            raise ConfigError(
                "queued.max.request.bytes",
                self.queued_max_request_bytes,
                f"at least socket.request.max.bytes, which is {self.socket_request_max_bytes}",
            )

    def _check_replication(self) -> None:
        waited = self.replica_fetch_wait_max_ms
        for name in ("replica.socket.timeout.ms", "replica.lag.time.max.ms"):
            bound = getattr(self, self.keys[name].attribute)
            if waited > bound:
                raise ConfigError("replica.fetch.wait.max.ms", waited, f"at most {name}, which is {bound}")

    def _check_cleaner(self) -> None:
        # Kafka's message says "at least", but its comparison excludes the MiB itself.
        if self.log_cleaner_dedupe_buffer_size // self.log_cleaner_threads <= _CLEANER_THREAD_BYTES:
            raise ConfigError(
                "log.cleaner.dedupe.buffer.size",
                self.log_cleaner_dedupe_buffer_size,
                f"more than {_CLEANER_THREAD_BYTES} for each of {self.log_cleaner_threads} log.cleaner.threads",
            )
        if self.log_cleaner_min_compaction_lag_ms > self.log_cleaner_max_compaction_lag_ms:
            raise ConfigError(
                "log.cleaner.min.compaction.lag.ms",
                self.log_cleaner_min_compaction_lag_ms,
                f"at most log.cleaner.max.compaction.lag.ms, which is {self.log_cleaner_max_compaction_lag_ms}",
            )

    def _check_admin(self) -> None:
        """Raise ConfigError for an invalid admin listener address, or an invalid export of metrics and traces."""
        _ = self.admin_http_address, self.export

    def _check_consumer_groups(self) -> None:
        self._check_group_intervals("consumer")

    def _check_streams_groups(self) -> None:
        self._check_group_intervals("streams")
        for replicas in ("standby", "warmup"):
            name, most = f"group.streams.num.{replicas}.replicas", f"group.streams.max.{replicas}.replicas"
            value, bound = (getattr(self, self.keys[key].attribute) for key in (name, most))
            if value > bound:
                raise ConfigError(name, str(value), f"at most {most}, which is {bound}")
        if self.group_streams_task_offset_interval_ms < self.group_streams_min_task_offset_interval_ms:
            raise ConfigError(
                "group.streams.task.offset.interval.ms",
                str(self.group_streams_task_offset_interval_ms),
                "at least group.streams.min.task.offset.interval.ms, which is "
                f"{self.group_streams_min_task_offset_interval_ms}",
            )

    def _check_group_intervals(self, kind: str) -> None:
        prefix = f"group.{kind}"
        for name in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"):
            value, low, high = (
                getattr(self, self.keys[f"{prefix}.{end}{name}"].attribute) for end in ("", "min.", "max.")
            )
            if not low <= value <= high:
                bounds = f"{prefix}.min.{name} ({low}) to {prefix}.max.{name} ({high})"
                raise ConfigError(f"{prefix}.{name}", str(value), f"a number from {bounds}")
        heartbeat, session = (
            getattr(self, self.keys[f"{prefix}.{name}"].attribute)
            for name in ("heartbeat.interval.ms", "session.timeout.ms")
        )
        if heartbeat >= session:
            raise ConfigError(
                f"{prefix}.heartbeat.interval.ms", str(heartbeat), f"less than {prefix}.session.timeout.ms ({session})"
            )

    def sasl_of_listeners(self) -> dict[str, ListenerSasl]:
        """Return the SASL settings of each SASL listener, including dynamic configs. Raises ConfigError."""
        return build_sasl((one.endpoint.name for one in self.endpoints if one.authenticates), self._security_texts())

    def client_of_brokers(self) -> dict[str, str]:
        """Return the client settings of this broker's connections to other brokers."""
        return build_client_properties(self._way_to_brokers(), self._security_texts())

    def client_of_controllers(self) -> dict[str, str]:
        """Return the client settings of this node's connections to controllers."""
        return build_client_properties(self._way_to_controllers(), self._security_texts())

    def _security_texts(self) -> dict[str, str]:
        return {**self.given, **self.of_mechanisms, **self.of_listeners, **self.dynamic_default, **self.dynamic_own}

    def _way_to_brokers(self) -> OutboundSecurity:
        name = self.inter_broker_listener
        return OutboundSecurity(name, self.security_protocols.get(name, "PLAINTEXT"), BETWEEN_BROKERS)

    def _way_to_controllers(self) -> OutboundSecurity:
        name = self.controller_listener_names[0].upper()
        return OutboundSecurity(name, self.security_protocols.get(name, "PLAINTEXT"), TO_CONTROLLERS)

    def _ways(self) -> list[OutboundSecurity]:
        """Return the kinds of connections to other nodes; none for a single-node cluster."""
        if self.is_single:
            return []
        return [self._way_to_controllers(), *([self._way_to_brokers()] if self.is_broker else [])]

    def connections_of_listeners(self) -> dict[str, ListenerConnections]:
        """Return the connection limits of each listener, including dynamic configs. Raises ConfigError."""
        texts = {**self.of_listeners, **self.dynamic_default, **self.dynamic_own}
        of_all = ListenerConnections(self.max_connections, self.max_connection_creation_rate)
        return build_connections((one.endpoint.name for one in self.endpoints), texts, of_all)

    def tls_of_listeners(self) -> dict[str, ListenerTls]:
        """Return the TLS settings of each TLS listener, including dynamic configs. Raises ConfigError."""
        texts = {**self.given, **self.of_listeners, **self.dynamic_default, **self.dynamic_own}
        return build_tls((one.endpoint.name for one in self.endpoints if one.is_encrypted), texts)

    @property
    def admin_http_address(self) -> tuple[str, int] | None:
        """Return host and port of the admin listener, None without one. Raises ConfigError."""
        text = self.admin_http_listener
        return None if text is None else parse_address("admin.http.listener", text)

    @property
    def export(self) -> ExportSettings | None:
        """Return the OpenTelemetry export settings; None where nothing is exported. Raises ConfigError."""
        return build_export(self)

    @property
    def is_broker(self) -> bool:
        """Whether the node has the role broker."""
        return "broker" in self.process_roles

    @property
    def is_controller(self) -> bool:
        """Whether the node has the role controller."""
        return "controller" in self.process_roles

    @property
    def is_single(self) -> bool:
        """Whether the node is a single-node cluster, which has no controller listener and connects to no node."""
        named = (self.controller_listener_names, self.quorum_voters, self.quorum_bootstrap_servers)
        return self.is_broker and self.is_controller and not any(named)

    @property
    def makes_its_cluster(self) -> bool:
        """Whether the node generates a missing cluster id, since no other node can be in that cluster yet."""
        is_alone = len(self.quorum_voters) <= 1 and not self.quorum_bootstrap_servers
        return self.is_broker and self.is_controller and is_alone

    @property
    def voter_ids(self) -> tuple[int, ...]:
        """Return the node ids of the voters of the metadata log; empty where the log contains them."""
        return tuple(voter.node_id for voter in self.quorum_voters) or ((self.node_id,) if self.is_single else ())

    @property
    def broker_endpoints(self) -> tuple[Listener, ...]:
        """Return the listeners for clients and other brokers."""
        return tuple(listener for listener in self.endpoints if not listener.is_controller)

    @property
    def controller_endpoints(self) -> tuple[Listener, ...]:
        """Return the listeners for controllers, and for brokers that connect to them."""
        return tuple(listener for listener in self.endpoints if listener.is_controller)

    @property
    def inter_broker_listener(self) -> str:
        """Return the inter-broker listener name, from inter.broker.listener.name or security.inter.broker.protocol.

        A single node, whose listeners may have any name, uses its first listener where none has that name.
        """
        name = (self.inter_broker_listener_name or self.security_inter_broker_protocol).upper()
        names = [listener.endpoint.name for listener in self.endpoints]
        return names[0] if self.is_single and name not in names else name

    @property
    def log_directories(self) -> tuple[Path, ...]:
        """Return the absolute paths of the log directories, in the configured order."""
        texts = self.log_dirs if self.log_dirs is not None else self.log_dir
        return tuple(Path(text).expanduser().absolute() for text in texts if text)

    @property
    def metadata_directory(self) -> Path:
        """Return the absolute path of the directory of the metadata log."""
        if self.metadata_log_dir is None:
            return self.log_directories[0]
        return Path(self.metadata_log_dir).expanduser().absolute()

    @property
    def roll_ms(self) -> int:
        """Return the age in ms at which a segment is rolled: log.roll.ms, else log.roll.hours."""
        return self.log_roll_hours * _HOUR_MS if self.log_roll_ms is None else self.log_roll_ms

    @property
    def roll_jitter_ms(self) -> int:
        """Return the jitter in ms of that age: log.roll.jitter.ms, else log.roll.jitter.hours."""
        return self.log_roll_jitter_hours * _HOUR_MS if self.log_roll_jitter_ms is None else self.log_roll_jitter_ms

    @property
    def retention_ms(self) -> int:
        """Return the age in ms after which segments are deleted, -1 for never: log.retention.ms, .minutes or .hours."""
        if self.log_retention_ms is not None:
            milliseconds = self.log_retention_ms
        elif self.log_retention_minutes is not None:
            milliseconds = self.log_retention_minutes * 60_000
        else:
            milliseconds = self.log_retention_hours * _HOUR_MS
        return max(milliseconds, -1)

    @property
    def flush_interval_ms(self) -> int:
        """Return the time in ms after which a log is flushed: log.flush.interval.ms, else
        log.flush.scheduler.interval.ms.
        """
        interval = self.log_flush_interval_ms
        return self.log_flush_scheduler_interval_ms if interval is None else interval


def _with_node_id(given: Mapping[str, str]) -> Mapping[str, str]:
    """Set each of `node.id` and `broker.id` to the other where it is absent."""
    text = next((given[name] for name in sorted(ID_NAMES) if name in given), None)
    return given if text is None else {**dict.fromkeys(ID_NAMES, text), **given}
