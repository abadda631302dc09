"""The clients' settings against Kafka's own: every key is known, and a value that Kafka's clients refuse is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pybroker.client.errors import SettingError
from pybroker.client.settings import AdminSettings, ClientSettings, ConsumerSettings, ProducerSettings
from pybroker.config.key import Kind
from tests.support import java_oracle

KINDS: dict[str, type[ClientSettings]] = {
    "producer": ProducerSettings,
    "consumer": ConsumerSettings,
    "admin": AdminSettings,
}
GROUP = {"group.id": "g"}
OTHER_DEFAULTS = {
    "bootstrap.servers": "it has none",
    "client.id": "names the client, where Kafka's makes one up",
    "enable.auto.commit": "on in a group, as Kafka's consumer has it in the end",
    "enable.idempotence": "on unless other settings forbid it, as Kafka's producer has it in the end",
    "metric.reporters": "there is no JMX",
    "ssl.enabled.protocols": "unset, it is both",
    "compression.lz4.level": "the fast codec",
    "compression.gzip.level": "the codec's own",
    "compression.zstd.level": "the codec's own, which is 3 as well",
    "partition.assignment.strategy": "the same assignors, by their short names",
    "key.serializer": "bytes",
    "value.serializer": "bytes",
    "key.deserializer": "bytes",
    "value.deserializer": "bytes",
    "partitioner.class": "empty, or none",
    "connections.max.idle.ms": "one of Kafka's two; nothing acts on it",
    "enable.metrics.push": "one of Kafka's two; nothing acts on it",
    "share.acquire.mode": "in small letters",
}
REFUSED: list[tuple[str, dict[str, str]]] = [
    ("producer", {"delivery.timeout.ms": "30004"}),
    ("producer", {"delivery.timeout.ms": "40000", "linger.ms": "10001"}),
    ("producer", {"enable.idempotence": "true", "acks": "1"}),
    ("producer", {"max.in.flight.requests.per.connection": "6"}),
    ("producer", {"max.in.flight.requests.per.connection": "6", "acks": "1"}),
    ("producer", {"enable.idempotence": "true", "retries": "0"}),
    ("producer", {"acks": "ALL"}),
    ("producer", {"compression.type": "GZIP"}),
    ("producer", {"compression.gzip.level": "0"}),
    ("producer", {"security.protocol": "CLEAR"}),
    ("producer", {"metadata.recovery.strategy": "sometimes"}),
    ("consumer", {"auto.offset.reset": "smallest"}),
    ("consumer", {"auto.offset.reset": "EARLIEST"}),
    ("consumer", {"auto.offset.reset": "by_duration:PT"}),
    ("consumer", {"auto.offset.reset": "by_duration:-PT1H"}),
    ("consumer", {"enable.auto.commit": "true"}),
    ("consumer", {"group.id": " "}),
    ("consumer", {**GROUP, "heartbeat.interval.ms": "45000"}),
    ("consumer", {**GROUP, "session.timeout.ms": "-1"}),
    ("consumer", {**GROUP, "group.protocol": "share"}),
    ("consumer", {**GROUP, "group.protocol": "consumer", "session.timeout.ms": "6000"}),
    ("consumer", {**GROUP, "group.remote.assignor": "range"}),
    ("consumer", {"isolation.level": "READ_COMMITTED"}),
    ("consumer", {"max.poll.records": "0"}),
    ("admin", {"default.api.timeout.ms": "29999"}),
    ("admin", {"request.timeout.ms": "soon"}),
]
TAKEN: list[tuple[str, dict[str, str]]] = [
    ("producer", {"request.timeout.ms": "200000"}),
    ("producer", {"enable.idempotence": "false", "acks": "0", "max.in.flight.requests.per.connection": "1000"}),
    ("producer", {"security.protocol": "plaintext"}),
    ("producer", {"metric.reporters": ""}),
    ("producer", {"linger.ms": "9007199254740992", "request.timeout.ms": "0"}),
    ("consumer", {"auto.offset.reset": "by_duration:P1DT2H"}),
    ("consumer", {"heartbeat.interval.ms": "45000"}),
    ("consumer", {**GROUP, "group.protocol": "CONSUMER"}),
    ("admin", {"request.timeout.ms": "100000"}),
]
REFUSED_HERE_ONLY: list[tuple[str, dict[str, str], str]] = [
    ("consumer", {**GROUP, "heartbeat.interval.ms": "0"}, "no pause between heartbeats"),
    ("consumer", {"group.instance.id": "i"}, "a place in no group"),
]


@pytest.fixture(scope="module")
def oracle() -> Iterator[java_oracle.JavaOracle]:
    with java_oracle.running("ClientSettingsOracle") as running:
        yield running


def fault(kind: str, configs: dict[str, str]) -> str | None:
    """What this client says is wrong."""
    try:
        KINDS[kind].from_properties({"bootstrap.servers": "h:1", **configs})
    except SettingError as error:
        return str(error)
    return None


@pytest.mark.parametrize(("kind", "configs"), [*REFUSED, *((kind, one) for kind, one, _ in REFUSED_HERE_ONLY)], ids=str)
def test_what_kafka_refuses_is_refused_by_name(kind: str, configs: dict[str, str]) -> None:
    words = fault(kind, configs)
    assert words is not None
    assert any(name in words for name in configs)


@pytest.mark.parametrize(("kind", "configs"), TAKEN, ids=str)
def test_what_kafka_takes_is_taken(kind: str, configs: dict[str, str]) -> None:
    assert fault(kind, configs) is None


@pytest.mark.java
def test_the_tables_are_kafkas(oracle: java_oracle.JavaOracle) -> None:
    for kind, configs in REFUSED:
        assert "fault" in oracle.query("make", kind=kind, configs=configs), (kind, configs)
    for kind, configs in TAKEN:
        assert oracle.query("make", kind=kind, configs=configs) == {}, (kind, configs)
    for kind, configs, why in REFUSED_HERE_ONLY:
        assert oracle.query("make", kind=kind, configs=configs) == {}, why


@pytest.mark.java
@pytest.mark.parametrize("kind", KINDS)
def test_every_key_of_kafkas_is_known_with_its_default(oracle: java_oracle.JavaOracle, kind: str) -> None:
    theirs, ours = oracle.query("keys", kind=kind), KINDS[kind].keys
    served = dict(theirs)
    assert sorted(served.keys() - ours.keys()) == []
    assert all(name in theirs or key.ours or name in KINDS[kind].unused for name, key in ours.items())
    other = {
        name: (default, ours[name].text_of(ours[name].default))
        for name, default in served.items()
        if name not in OTHER_DEFAULTS and (default or "") != (_text(ours[name].text_of(ours[name].default)))
    }
    assert other == {}


def _text(default: str | None) -> str:
    return (default or "").removesuffix(".0")


@pytest.mark.java
@pytest.mark.parametrize("kind", KINDS)
def test_numbers_have_kafkas_ranges(oracle: java_oracle.JavaOracle, kind: str) -> None:
    """The same verdict at the ends of each range and one beyond, but for `RANGES_OF_OUR_OWN`."""
    differ = []
    theirs = oracle.query("keys", kind=kind)
    for name, key in KINDS[kind].keys.items():
        if name not in theirs or key.kind not in (Kind.INT, Kind.LONG, Kind.DOUBLE):
            continue
        for value in ("-2", "-1", "0", "1", "9", "10", "17", "18", "22", "23", "2147483648", "9223372036854775808"):
            configs = {"request.timeout.ms": "0", name: value}
            if ("fault" in oracle.query("read", kind=kind, configs=configs)) is not (fault(kind, configs) is not None):
                differ.append((name, value))
    assert {name for name, _ in differ} <= RANGES_OF_OUR_OWN.keys()


RANGES_OF_OUR_OWN: dict[str, str] = {
    "heartbeat.interval.ms": "no time between heartbeats, or less, is none",
    "session.timeout.ms": "no time, or less, is no session; without a group Kafka's consumer does not look",
    "delivery.timeout.ms": "Kafka's producer looks at it when it is made",
    "sasl.kerberos.ticket.renew.jitter": "the system's library renews tickets: it acts in no client",
    "sasl.kerberos.ticket.renew.window.factor": "the system's library renews tickets: it acts in no client",
    "socket.connection.setup.timeout.max.ms": "less than no time is no limit",
    "socket.connection.setup.timeout.ms": "less than no time is no limit",
    "transaction.timeout.ms": "a transaction that may take no time, or less, is none; Kafka's brokers refuse it",
}
