"""Settings that Kafka refuses, and some that it takes: tables that are held against this broker, and against Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.config.dynamic import dynamic_fault
from pybroker.config.errors import ConfigError
from pybroker.config.topic import TopicConfig
from tests.support import java_oracle

Configs = dict[str, str]

_THROTTLED = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")

REFUSED_BY_A_BROKER: list[Configs] = [
    *({name: "0"} for name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours")),
    {"log.retention.ms": "0", "log.retention.hours": "5"},
    {"log.cleaner.threads": "0"},
    {"log.cleaner.threads": "128"},
    {"log.cleaner.dedupe.buffer.size": "1"},
    {"log.cleaner.dedupe.buffer.size": "1048576"},
    {"log.cleaner.dedupe.buffer.size": "2097153", "log.cleaner.threads": "2"},
    {"log.cleaner.dedupe.buffer.size": "1", "log.cleaner.enable": "false"},
    {"log.cleaner.min.cleanable.ratio": "2"},
    {"log.cleaner.backoff.ms": "-1"},
    {"queued.max.request.bytes": "5"},
    {"queued.max.request.bytes": "104857599"},
    {"queued.max.request.bytes": "1000", "socket.request.max.bytes": "1001"},
    {"group.consumer.assignors": ""},
    {"group.consumer.assignors": "nobody"},
    {"group.consumer.heartbeat.interval.ms": "50000"},
    {"replica.fetch.wait.max.ms": "30001", "replica.lag.time.max.ms": "40000"},
    {"replica.lag.time.max.ms": "499"},
    {"log.dirs": ""},
    {"log.roll.ms": "0"},
    {"log.segment.bytes": "14"},
    {"message.max.bytes": "-1"},
    {"offsets.topic.compression.codec": "9"},
    {"offsets.topic.num.partitions": "0"},
    {"compression.zstd.level": "99"},
    {"min.insync.replicas": "0"},
    {"log.message.timestamp.after.max.ms": "-1"},
    {"fetch.max.bytes": "1"},
    *({"log.cleaner.io.max.bytes.per.second": value} for value in ("1_0", "inf", "nan", "x", "1e", ".", "Infinityd")),
]
REFUSED_FOR_A_TOPIC: list[Configs] = [
    {"remote.storage.enable": "true"},
    *({name: value} for name in _THROTTLED for value in ("x", "none", "0:x", "-1:2", "*:1", "0:1,*", "0", "0:1:2")),
    {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
    {"segment.bytes": "14"},
    {"flush.ms": "-1"},
    {"min.cleanable.dirty.ratio": "1.1"},
    {"cleanup.policy": "burn"},
    {"retention.ms": "-2"},
    {"no.such.setting": "1"},
]
TAKEN_BY_A_BROKER: list[Configs] = [
    {},
    *({"log.retention.ms": value} for value in ("-1", "-2", "-9223372036854775808")),
    *({name: "-2"} for name in ("log.retention.minutes", "log.retention.hours", "log.retention.bytes")),
    {"log.retention.ms": "1", "log.retention.hours": "0"},
    {"log.cleaner.dedupe.buffer.size": "1048577"},
    {"log.cleaner.dedupe.buffer.size": "2097154", "log.cleaner.threads": "2"},
    {"queued.max.request.bytes": "0"},
    {"queued.max.request.bytes": "104857600"},
    {"group.consumer.assignors": "range"},
    {"replica.alter.log.dirs.io.max.bytes.per.second": "0"},
    {"leader.replication.throttled.rate": "0", "follower.replication.throttled.rate": "0"},
    *(
        {"log.cleaner.io.max.bytes.per.second": value}
        for value in ("0", "-1", "-0.5", "-Infinity", "1e400", "5.d", ".5F")
    ),
    {"log.cleanup.policy": ""},
]
TAKEN_FOR_A_TOPIC: list[Configs] = [
    {"remote.storage.enable": "false"},
    *({name: value} for name in _THROTTLED for value in ("*", "", "0:1", "0:1,1:2", "0:1, 12:3", "0:1,,1:2")),
    {"retention.ms": "0"},
    {"retention.bytes": "-5"},
    {"cleanup.policy": ""},
]

_PACE_OF_MOVES = "replica.alter.log.dirs.io.max.bytes.per.second"
REFUSED_AS_A_CHANGE: list[Configs] = [
    *({_PACE_OF_MOVES: value} for value in ("-1", "1.5", "x")),
    *({f"{role}.replication.throttled.rate": "-1"} for role in ("leader", "follower")),
    {"log.retention.ms": "soon"},
]
TAKEN_AS_A_CHANGE: list[Configs] = [
    *({_PACE_OF_MOVES: value} for value in ("0", "1")),
    {"log.retention.ms": "-2"},
    {"log.cleaner.io.max.bytes.per.second": "-1"},
]

_CERTIFICATES = ("keystore.certificate.chain", "keystore.key", "keystore.location", "truststore.location")
_OF_ONE_LISTENER = "listener.name.plaintext."
REFUSED_AS_ALL_CHANGES: list[tuple[str, Configs]] = [
    *(("own", {f"ssl.{what}": "x"}) for what in (*_CERTIFICATES, "key.password", "truststore.password")),
    *(("default", {name: "x"}) for name in ("sasl.kerberos.service.name", "ssl.protocol", "sasl.jaas.config")),
    ("default", {f"{_OF_ONE_LISTENER}ssl.keystore.location": "x"}),
    ("own", {"ssl.client.auth": "maybe"}),
    ("own", {"ssl.engine.factory.class": "no.such.Class"}),
    ("own", {"principal.builder.class": "no.such.Class"}),
    ("own", {"sasl.login.refresh.buffer.seconds": "99999"}),
    ("own", {"remote.log.index.file.cache.total.size.bytes": "0"}),
    *((kind, {f"group.{sort}.assignment.interval.ms": "15001"}) for kind in ("own", "default") for sort in ("share",)),
    ("own", {"cordoned.log.dirs": "/no/such/directory"}),
    ("default", {"cordoned.log.dirs": ""}),
    ("own", {"socket.request.max.bytes": "1048576"}),
    ("own", {"listeners": "PLAINTEXT://:9092"}),
    ("own", {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093,NEW://:9094"}),
    ("own", {"listeners": "CONTROLLER://:9093"}),
    ("own", {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT"}),
    ("own", {"advertised.listeners": "PLAINTEXT://host:9092"}),
]
TAKEN_AS_ALL_CHANGES: list[tuple[str, Configs]] = [
    ("own", {"sasl.kerberos.service.name": "kafka", "sasl.kerberos.kinit.cmd": "/bin/kinit"}),
    ("own", {"sasl.kerberos.ticket.renew.window.factor": "7", "sasl.login.refresh.window.jitter": "-1"}),
    ("own", {"sasl.jaas.config": "x", "sasl.mechanism.inter.broker.protocol": "PLAIN"}),
    ("own", {"ssl.client.auth": "required", "ssl.protocol": "TLSv9", "ssl.cipher.suites": "a,b"}),
    ("own", {f"{_OF_ONE_LISTENER}{name}": "x" for name in ("ssl.keystore.location", "ssl.key.password")}),
    ("own", {f"{_OF_ONE_LISTENER}plain.sasl.jaas.config": "x", "listener.name.nobody.ssl.truststore.type": "PEM"}),
    ("own", {"cordoned.log.dirs": ""}),
    (
        "own",
        {
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093,NEW://:9094",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,NEW:PLAINTEXT",
        },
    ),
    ("default", {"remote.fetch.max.wait.ms": "1", "transaction.partition.verification.enable": "false"}),
    ("default", {"group.coordinator.cached.buffer.max.bytes": "524288", "group.share.assignment.interval.ms": "15000"}),
    ("default", {"metric.reporters": "", "config.providers": ""}),
]

# What Kafka takes, and what comes of it there.
REFUSED_HERE_ONLY: list[tuple[str, Configs, str]] = [
    ("broker", {"log.cleaner.io.max.bytes.per.second": "NaN"}, "no number: it is taken for no limit"),
    ("broker", {"log.cleaner.min.cleanable.ratio": "NaN"}, "no number: no log is ever dirty enough"),
    ("topic", {"min.cleanable.dirty.ratio": "NaN"}, "no number: no log is ever dirty enough"),
    ("broker", {"log.cleaner.io.buffer.load.factor": "-0.5"}, "no key has room: nothing is ever compacted"),
    ("broker", {"log.cleaner.io.buffer.load.factor": "NaN"}, "no key has room: nothing is ever compacted"),
    ("broker", {"log.cleaner.min.cleanable.ratio": "0x1p-1"}, "a half, in base 16: nobody means to write so"),
    ("broker", {"num.replica.alter.log.dirs.threads": "0"}, "the first move divides by it"),
    ("broker", {"num.replica.alter.log.dirs.threads": "-1"}, "no number of threads: there is one"),
    ("broker", {_PACE_OF_MOVES: "-1"}, "not looked at in a file; as a change it is refused"),
    ("broker", {_PACE_OF_MOVES: "x"}, "not looked at in a file; as a change it is refused"),
]
# Dynamic keys of which Kafka takes a value of their type that is refused here, and why.
REFUSED_WHATEVER_THE_VALUE = {
    "config.providers": "none can be loaded, and Kafka goes on without them",
    "principal.builder.class": "read at the start",
}
# A value that Kafka takes, where the one of the type is none.
VALUES = {
    "compression.type": "zstd",
    "cordoned.log.dirs": "",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "log.cleanup.policy": "compact",
    "log.cleaner.dedupe.buffer.size": "134217728",
    "log.cleaner.max.compaction.lag.ms": "9223372036854775807",
    "log.cleaner.min.compaction.lag.ms": "7",
    "log.message.timestamp.type": "CreateTime",
    "max.connections.per.ip.overrides": "127.0.0.1:7",
    "metric.reporters": "",
    "principal.builder.class": "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
    "ssl.client.auth": "none",
    **dict.fromkeys(("compression.gzip.level", "compression.lz4.level", "compression.zstd.level"), "2"),
    **dict.fromkeys(("num.network.threads", "num.replica.fetchers", "log.cleaner.threads"), "2"),
    "num.recovery.threads.per.data.dir": "2",
    "remote.log.manager.follower.thread.pool.size": "2",
    "group.coordinator.cached.buffer.max.bytes": "524288",
    "share.coordinator.cached.buffer.max.bytes": "524288",
    "log.segment.bytes": "1048576",
}
OF_TYPE = {"INT": "9", "LONG": "900000", "SHORT": "9", "DOUBLE": "0.5", "BOOLEAN": "true", "LIST": "a"}

# The node that the oracle asks about changes.
NODE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
}


def fault(kind: str, configs: Configs) -> str | None:
    """What this broker says is wrong."""
    try:
        if kind in ("own", "default"):
            return dynamic_fault(BrokerConfig(NODE), BrokerConfig(NODE), configs, is_own=kind == "own")
        if kind == "change":
            return dynamic_fault(BrokerConfig({}), BrokerConfig({}), configs, is_own=True)
        if kind == "broker":
            BrokerConfig(configs)
        else:
            TopicConfig(configs, BrokerConfig({}))
    except ConfigError as error:
        return str(error)
    return None


REFUSED = [("broker", REFUSED_BY_A_BROKER), ("topic", REFUSED_FOR_A_TOPIC), ("change", REFUSED_AS_A_CHANGE)]
TAKEN = [("broker", TAKEN_BY_A_BROKER), ("topic", TAKEN_FOR_A_TOPIC), ("change", TAKEN_AS_A_CHANGE)]


@pytest.mark.parametrize(
    ("kind", "configs"),
    [(kind, one) for kind, table in REFUSED for one in table]
    + [(kind, one) for kind, one, _ in REFUSED_HERE_ONLY]
    + REFUSED_AS_ALL_CHANGES,
    ids=str,
)
def test_what_kafka_refuses_is_refused_by_name(kind: str, configs: Configs) -> None:
    words = fault(kind, configs)
    assert words is not None
    assert any(name in words for name in configs)
    assert "\n" not in words


@pytest.mark.parametrize(
    ("kind", "configs"), [(kind, one) for kind, table in TAKEN for one in table] + TAKEN_AS_ALL_CHANGES, ids=str
)
def test_what_kafka_takes_is_taken(kind: str, configs: Configs) -> None:
    assert fault(kind, configs) is None


def test_a_key_that_kafka_does_not_know_is_kept_also_for_one_listener() -> None:
    for name in ("sasl.kerberos.servise.name", f"{_OF_ONE_LISTENER}no.such.setting", "ssl.nothing"):
        assert fault("own", {name: "x"}) is None


def test_a_secret_is_in_no_refusal() -> None:
    words = fault("own", {"ssl.key.password": "hunter2"}), fault("default", {"sasl.jaas.config": "hunter2"})
    assert all(reported and "hunter2" not in reported for reported in words)


@pytest.fixture(scope="module")
def oracle() -> Iterator[java_oracle.JavaOracle]:
    with java_oracle.running("ConfigOracle") as running:
        yield running


@pytest.mark.java
def test_the_tables_are_kafkas(oracle: java_oracle.JavaOracle) -> None:
    def faults(kind: str, table: list[Configs]) -> list[str | None]:
        return [oracle.query(kind, configs=configs).get("fault") for configs in table]

    for kind, table in REFUSED:
        taken = [configs for configs, reported in zip(table, faults(kind, table), strict=True) if reported is None]
        assert taken == []
    for kind, table in TAKEN:
        assert [reported for reported in faults(kind, table) if reported is not None] == []
    for kind, configs, why in REFUSED_HERE_ONLY:
        assert faults(kind, [configs]) == [None], why


@pytest.mark.java
def test_the_tables_of_changes_are_kafkas(oracle: java_oracle.JavaOracle) -> None:
    def reported(kind: str, configs: Configs) -> str | None:
        return oracle.query(kind, configs=configs).get("fault")

    taken = [configs for kind, configs in REFUSED_AS_ALL_CHANGES if reported(kind, configs) is None]
    refused = [
        (configs, words) for kind, configs in TAKEN_AS_ALL_CHANGES if (words := reported(kind, configs)) is not None
    ]
    assert (taken, refused) == ([], [])


@pytest.mark.java
def test_every_key_that_kafka_lets_change_is_taken_where_kafka_takes_it(oracle: java_oracle.JavaOracle) -> None:
    differing = []
    refused_here = set()
    types = oracle.query("dynamic")
    assert len(types) > 100
    for name, kind in types.items():
        configs = {name: VALUES.get(name, OF_TYPE.get(kind, "x"))}
        for level in ("own", "default"):
            theirs, ours = oracle.query(level, configs=configs).get("fault"), fault(level, configs)
            if name in REFUSED_WHATEVER_THE_VALUE and ours is not None:
                refused_here.add(name)
            elif (theirs is None) != (ours is None):
                differing.append((level, configs, theirs, ours))
    assert differing == []
    assert refused_here == set(REFUSED_WHATEVER_THE_VALUE)
