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


def fault(kind: str, configs: Configs) -> str | None:
    """What this broker says is wrong."""
    try:
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
    [(kind, one) for kind, table in REFUSED for one in table] + [(kind, one) for kind, one, _ in REFUSED_HERE_ONLY],
    ids=str,
)
def test_what_kafka_refuses_is_refused_by_name(kind: str, configs: Configs) -> None:
    words = fault(kind, configs)
    assert words is not None
    assert any(name in words for name in configs)
    assert "\n" not in words


@pytest.mark.parametrize(("kind", "configs"), [(kind, one) for kind, table in TAKEN for one in table], ids=str)
def test_what_kafka_takes_is_taken(kind: str, configs: Configs) -> None:
    assert fault(kind, configs) is None


@pytest.fixture(scope="module")
def oracle() -> Iterator[java_oracle.JavaOracle]:
    with java_oracle.running("ConfigOracle") as running:
        yield running


@pytest.mark.java
@pytest.mark.timeout(300)
def test_the_tables_are_kafkas(oracle: java_oracle.JavaOracle) -> None:
    def faults(kind: str, table: list[Configs]) -> list[str | None]:
        return [oracle.ask(kind, configs=configs).get("fault") for configs in table]

    for kind, table in REFUSED:
        taken = [configs for configs, said in zip(table, faults(kind, table), strict=True) if said is None]
        assert taken == []
    for kind, table in TAKEN:
        assert [said for said in faults(kind, table) if said is not None] == []
    for kind, configs, why in REFUSED_HERE_ONLY:
        assert faults(kind, [configs]) == [None], why
