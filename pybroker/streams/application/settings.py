"""The settings of a running application, with Kafka's names and defaults (`StreamsConfig`).

Owns the keys of the application and the division of all other keys among its clients. Keys without a prefix reach
every client. `consumer.`, `main.consumer.`, `restore.consumer.`, `global.consumer.`, `producer.` and `admin.` address
one client, `topic.` the internal topics. A key that nothing reads is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, NoReturn

import msgspec

from pybroker.client.settings import ConsumerSettings, ProducerSettings
from pybroker.client.settings.base import ClientSettings
from pybroker.client.settings.connection import AdminSettings
from pybroker.streams.config import GUARANTEES, StreamsConfig, parse_config
from pybroker.streams.errors import StreamsError
from pybroker.streams.exception_handlers import ExceptionHandler, Handlers, log_and_continue, log_and_fail
from pybroker.streams.state.directory import default_state_dir

EXACTLY_ONCE = GUARANTEES[1]
EMIT_INTERVAL = "__emit.interval.ms.kstreams.windowed.aggregation__"
"""Kafka's internal key of the least time between two emissions of final results: 1,000 ms by default."""
EXACTLY_ONCE_PRODUCER = {"transaction.timeout.ms": 10_000, "delivery.timeout.ms": 2**31 - 1}
"""Kafka's defaults of the producer with exactly_once_v2: an open transaction of a killed instance ends soon."""
HOST_PORT = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]+)\]?:([0-9]+)")
"""Kafka's pattern of an address (`Utils.getHost`): a scheme is left out, and so are the brackets of IPv6."""
PREFIXES = ("main.consumer.", "restore.consumer.", "global.consumer.", "consumer.", "producer.", "admin.", "topic.")
OF_THE_CONFIG = frozenset(
    {
        "application.id",
        "default.dsl.store",
        "default.key.serde",
        "default.timestamp.extractor",
        "default.value.serde",
        "max.task.idle.ms",
        "processing.guarantee",
        "state.dir",
        "statestore.cache.max.bytes",
        "topology.optimization",
    }
)
"""Keys that the test driver reads too."""
HANDLERS: Mapping[str, ExceptionHandler] = {
    "fail": log_and_fail,
    "continue": log_and_continue,
    "org.apache.kafka.streams.errors.LogAndFailExceptionHandler": log_and_fail,
    "org.apache.kafka.streams.errors.LogAndContinueExceptionHandler": log_and_continue,
    "org.apache.kafka.streams.errors.LogAndFailProcessingExceptionHandler": log_and_fail,
    "org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler": log_and_continue,
    "org.apache.kafka.streams.errors.DefaultProductionExceptionHandler": log_and_fail,
}
_CONTROLLED = {
    "consumer.": ("group.id", "enable.auto.commit", "group.protocol", "allow.auto.create.topics"),
    "producer.": ("transactional.id", "enable.idempotence"),
}
"""Keys of clients that the application sets itself, by prefix."""


class ClientProperties(msgspec.Struct, frozen=True):
    """The properties of each client, with Kafka's keys."""

    main: Mapping[str, Any]
    restore: Mapping[str, Any]
    globals: Mapping[str, Any]
    producer: Mapping[str, Any]
    admin: Mapping[str, Any]


class ApplicationSettings(msgspec.Struct, frozen=True):
    """The settings of one `KafkaStreams`. Times are in milliseconds."""

    config: StreamsConfig
    bootstrap_servers: str
    client_id: str | None
    """`client.id`: the prefix of the ids of threads and clients; None for the application id and the process id."""
    threads: int
    """`num.stream.threads`"""
    exactly_once: bool
    """Whether `processing.guarantee` is `exactly_once_v2`."""
    commit_interval_ms: int
    """`commit.interval.ms`: 30,000 by default, and 100 with `exactly_once_v2`."""
    poll_ms: int
    """`poll.ms`: how long a thread without work waits for records."""
    buffered_records: int
    """`buffered.records.per.partition`: a partition with more records in its queue is paused."""
    task_timeout_ms: int
    """`task.timeout.ms`: how long a task retries what it cannot complete."""
    replication_factor: int
    """`replication.factor` of internal topics; -1 for the default of the brokers."""
    window_additional_retention_ms: int
    """`windowstore.changelog.additional.retention.ms`"""
    endpoint: tuple[str, int] | None
    """`application.server`: host and port where other instances query the state of this one."""
    cleanup_delay_ms: int
    """`state.cleanup.delay.ms`: how long the state of a task that has moved away is kept."""
    handlers: Handlers
    topic_configs: Mapping[str, str]
    """The configuration of internal topics, from `topic.`."""
    clients: ClientProperties


def parse_settings(given: Mapping[str, Any]) -> ApplicationSettings:
    """Return the settings of an application.

    Raises:
        StreamsError: a key is unknown, a required key is missing, or a value is invalid.
        SettingError: a client refuses a value.
    """
    rest = _Rest(given)
    for key in ("application.id", "bootstrap.servers"):
        if not rest.given.get(key):
            raise StreamsError(f"missing required setting '{key}': expected a str that is not empty")
    for_config = {key: rest.given.pop(key) for key in sorted(OF_THE_CONFIG & rest.given.keys())}
    for_config.setdefault("state.dir", default_state_dir())
    config = parse_config(for_config, "", emit_interval_ms=rest.number(EMIT_INTERVAL, 1_000, 0))
    exactly_once = for_config.get("processing.guarantee") == EXACTLY_ONCE
    _check_protocol(rest)
    topics = {key.removeprefix("topic."): str(value) for key, value in rest.take_prefix("topic.").items()}
    servers = rest.take("bootstrap.servers", "")
    settings = ApplicationSettings(
        config=config,
        bootstrap_servers=servers if isinstance(servers, str) else ",".join(servers),
        client_id=rest.take("client.id", None),
        threads=rest.number("num.stream.threads", 1, 1),
        exactly_once=exactly_once,
        commit_interval_ms=rest.number("commit.interval.ms", 100 if exactly_once else 30_000, 0),
        poll_ms=rest.number("poll.ms", 100, 0),
        buffered_records=rest.number("buffered.records.per.partition", 1_000, 1),
        task_timeout_ms=rest.number("task.timeout.ms", 300_000, 0),
        replication_factor=rest.number("replication.factor", -1, -1),
        window_additional_retention_ms=rest.number("windowstore.changelog.additional.retention.ms", 86_400_000, 0),
        endpoint=_endpoint(rest.take("application.server", None)),
        cleanup_delay_ms=rest.number("state.cleanup.delay.ms", 600_000, 0),
        handlers=_handlers(rest),
        topic_configs=topics,
        clients=ClientProperties({}, {}, {}, {}, {}),
    )
    whole = msgspec.structs.replace(settings, clients=_clients(rest, settings))
    _check_transactions(whole)
    return whole


class _Rest:
    """The settings that have not been read yet."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.given = {key: value for key, value in given.items() if value is not None}
        self.known = set(OF_THE_CONFIG)
        """The keys of the application."""

    def take(self, key: str, default: Any) -> Any:
        self.known.add(key)
        return self.given.pop(key, default)

    def take_prefix(self, prefix: str) -> dict[str, Any]:
        return {key: self.given.pop(key) for key in [key for key in self.given if key.startswith(prefix)]}

    def number(self, key: str, default: int, least: int) -> int:
        value = self.take(key, default)
        try:
            number = int(value)
        except (TypeError, ValueError):
            number = least - 1
        if number < least:
            _refuse(key, value, f"an integer >= {least}")
        return number


def _refuse(key: str, value: Any, expected: str) -> NoReturn:
    raise StreamsError(f"invalid value {value!r} for '{key}': expected {expected}")


def _check_protocol(rest: _Rest) -> None:
    """Refuse what the coordinator decides, and the protocol that this runner does not have."""
    protocol = rest.take("group.protocol", "streams")
    if protocol != "streams":
        _refuse("group.protocol", protocol, "streams: applications join streams groups (KIP-1071) only")
    for key in ("num.standby.replicas", "max.warmup.replicas", "acceptable.recovery.lag"):
        if key in rest.given:
            group_key = {"max.warmup.replicas": "num.warmup.replicas"}.get(key, key)
            _refuse(key, rest.given[key], f"no value: the group has it, as the group configuration streams.{group_key}")
    for key in ("group.instance.id", "consumer.group.instance.id", "main.consumer.group.instance.id"):
        if rest.given.get(key):
            _refuse(key, rest.given[key], "no value: streams groups have no static members")


def _check_transactions(settings: ApplicationSettings) -> None:
    """Refuse transactions that the coordinator aborts before they are committed."""
    timeout_ms = int(settings.clients.producer.get("transaction.timeout.ms", settings.commit_interval_ms))
    if settings.exactly_once and timeout_ms < settings.commit_interval_ms:
        _refuse(
            "producer.transaction.timeout.ms",
            timeout_ms,
            f"at least commit.interval.ms ({settings.commit_interval_ms})",
        )


def _endpoint(value: Any) -> tuple[str, int] | None:
    if value is None or value == "":
        return None
    found = HOST_PORT.fullmatch(str(value))
    if found is None or not 0 < int(found[2]) < 65_536:
        _refuse("application.server", value, "host:port, such as 10.0.0.1:7070")
    return found[1], int(found[2])


def _handlers(rest: _Rest) -> Handlers:
    topic = rest.take("errors.dead.letter.queue.topic.name", None)
    if topic is not None and (not isinstance(topic, str) or not topic):
        _refuse("errors.dead.letter.queue.topic.name", topic, "the name of a topic")
    chosen: dict[str, Callable[..., Any]] = {}
    for kind in ("deserialization", "processing", "production"):
        key = f"{kind}.exception.handler"
        value = rest.take(key, rest.take(f"default.{key}", "fail"))
        handler = HANDLERS.get(value) if isinstance(value, str) else value
        if not callable(handler):
            _refuse(key, value, "a function (context, error) -> Response, or one of fail, continue")
        chosen[kind] = handler
    return Handlers(**chosen, dead_letter_topic=topic)


def _clients(rest: _Rest, settings: ApplicationSettings) -> ClientProperties:
    """Divide the remaining keys among the clients, and have each client check its own."""
    given = rest.given.items()
    common = {key: value for key, value in given if not key.startswith(PREFIXES)}
    of = {prefix: {k.removeprefix(prefix): v for k, v in given if k.startswith(prefix)} for prefix in PREFIXES}
    for prefix, keys in _CONTROLLED.items():
        for key in keys:
            if key in common or any(key in of[p] for p in PREFIXES if p.endswith(prefix)):
                _refuse(key, common.get(key, of[prefix].get(key)), "no value: the application sets it")
    known = ConsumerSettings.keys.keys() | ProducerSettings.keys.keys() | AdminSettings.keys.keys()
    unknown = sorted(common.keys() - known)
    if unknown:
        near = get_close_matches(unknown[0], sorted(known | rest.known), n=1, cutoff=0.8)
        hint = f". Did you mean {near[0]}?" if near else ""
        raise StreamsError(
            f"unknown settings {', '.join(unknown)}: expected keys of Kafka's StreamsConfig or clients{hint}"
        )

    def acting(kind: Any, *, defaults: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
        """Return the common keys that the client has, after its defaults and before the keys of its prefix."""
        return {**defaults, **{key: value for key, value in common.items() if key in kind.keys}, **own}

    isolation = {"isolation.level": "read_committed"} if settings.exactly_once else {}
    reads = {"auto.offset.reset": "earliest", "max.poll.records": 1_000, **isolation}
    fixed = {"enable.auto.commit": False, "allow.auto.create.topics": False}
    unowned = {**fixed, "auto.offset.reset": "none"}
    consumer = acting(ConsumerSettings, defaults=reads, own=of["consumer."])
    main = {**consumer, **of["main.consumer."], **fixed, "group.protocol": "consumer"}
    main["group.id"] = settings.config.application_id
    restore: dict[str, Any] = {**consumer, **of["restore.consumer."], **unowned}
    globals_: dict[str, Any] = {**consumer, **of["global.consumer."], **unowned}
    for properties in (restore, globals_):
        for key in ("group.id", "group.instance.id", "session.timeout.ms", "heartbeat.interval.ms"):
            properties.pop(key, None)
    producer = acting(
        ProducerSettings,
        defaults={"linger.ms": 100, **(EXACTLY_ONCE_PRODUCER if settings.exactly_once else {})},
        own=of["producer."],
    )
    clients = ClientProperties(main, restore, globals_, producer, acting(AdminSettings, defaults={}, own=of["admin."]))
    checked: tuple[tuple[type[ClientSettings], Mapping[str, Any]], ...] = (
        (ConsumerSettings, main),
        (ConsumerSettings, restore),
        (ConsumerSettings, globals_),
        (ProducerSettings, producer),
        (AdminSettings, clients.admin),
    )
    for kind, its in checked:
        kind.of_client(settings.bootstrap_servers, its)
    return clients
