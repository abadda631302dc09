from __future__ import annotations

from pathlib import Path

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.config.errors import ConfigError


def test_without_a_file_every_value_is_kafkas_default() -> None:
    config = BrokerConfig.from_properties(None)
    assert config.num_network_threads == 3
    assert config.socket_request_max_bytes == 104857600
    assert config.message_max_bytes == 1048588
    assert config.log_segment_bytes == 1073741824
    assert config.roll_ms == 604800000
    assert config.retention_ms == 604800000
    assert config.fetch_max_bytes == 57671680
    assert config.auto_create_topics_enable is True


def test_overrides_win_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("node.id=3\nnum.partitions=4\n")
    config = BrokerConfig.from_properties(path, ["num.partitions=6"])
    assert (config.node_id, config.num_partitions) == (3, 6)
    assert config.given == {"broker.id": "3", "node.id": "3", "num.partitions": "6"}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("num.network.threads", "0", "num.network.threads=0: expected a whole number from 1 to 64"),
        ("transaction.two.phase.commit.enable", "true", "transaction.two.phase.commit.enable=true: expected false"),
        ("num.network.threads", "65", "num.network.threads=65: expected a whole number from 1 to 64"),
        ("num.network.threads", "three", "num.network.threads=three: expected a whole number from 1 to 64"),
        ("num.network.threads", "1_0", "num.network.threads=1_0: expected a whole number from 1 to 64"),
        ("delete.topic.enable", "yes", "delete.topic.enable=yes: expected true or false"),
        ("log.message.timestamp.type", "x", "expected one of CreateTime, LogAppendTime"),
        ("log.cleanup.policy", "delete,burn", "expected a comma-separated list of delete, compact"),
        (
            "message.max.bytes",
            "99999999999",
            "message.max.bytes=99999999999: expected a whole number from 0 to 2147483647",
        ),
        ("log.retention.ms", "9" * 20, f"expected a whole number from -9223372036854775808 to {2**63 - 1}"),
        ("compression.gzip.level", "12", "expected a whole number from -1 to 9"),
        ("node.id", "99999999999", "node.id=99999999999: expected"),
        (
            "group.consumer.assignors",
            "",
            "group.consumer.assignors=: expected a comma-separated list of uniform, range that is not empty",
        ),
        ("process.roles", "broker", 'Missing required configuration "node.id" which has no default value.'),
        ("log.dirs", ",", "expected at least one directory"),
        ("log.dirs", "/a,/a", "expected each directory once"),
        ("log.cleaner.threads", "0", "log.cleaner.threads=0: expected a whole number from 1 to 2147483647"),
        (
            "log.cleaner.dedupe.buffer.size",
            "1048576",
            "log.cleaner.dedupe.buffer.size=1048576: expected more than 1048576 for each of 1 log.cleaner.threads",
        ),
        ("log.cleaner.threads", "128", "log.cleaner.dedupe.buffer.size=134217728: expected more than 1048576"),
        (
            "authorizer.class.name",
            "a.B",
            "expected org.apache.kafka.metadata.authorizer.StandardAuthorizer, a Python class as",
        ),
    ],
)
def test_a_wrong_value_is_reported_in_one_line(key: str, value: str, message: str) -> None:
    with pytest.raises(ConfigError) as failure:
        BrokerConfig({key: value})
    assert message in str(failure.value)
    assert "\n" not in str(failure.value)


def test_an_unknown_key_is_no_failure() -> None:
    assert BrokerConfig({"num.partition": "1"}).unknown == ("num.partition",)


def test_a_setting_cannot_be_changed() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        BrokerConfig({}).node_id = 4


@pytest.mark.parametrize(
    ("given", "retention_ms"),
    [
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.minutes": "-2", "log.retention.hours": "5"}, -1),
        ({"log.retention.ms": "-9223372036854775808"}, -1),
    ],
)
def test_the_finest_unit_of_retention_speaks(given: dict[str, str], retention_ms: int) -> None:
    assert BrokerConfig(given).retention_ms == retention_ms


def test_a_listeners_congestion_control_wins_over_the_brokers() -> None:
    config = BrokerConfig(
        {
            "listeners": "A://:1,B://:2",
            "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
            "congestion.control": "reno",
            "listener.name.b.congestion.control": "cubic",
        }
    )
    assert [listener.congestion_control for listener in config.endpoints] == ["reno", "cubic"]
    assert config.unknown == ()


def test_a_key_of_the_table_has_a_meaning_and_a_valid_default() -> None:
    for key in BrokerConfig.keys.values():
        assert key.doc.endswith("."), key.name
        assert key.default is None or key.check(key.default), key.name


def test_the_file_that_comes_with_kafka_is_understood() -> None:
    """The settings of Apache Kafka 4.3's config/server.properties."""
    config = BrokerConfig(
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": "localhost:9093",
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "inter.broker.listener.name": "PLAINTEXT",
            "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL",
            "num.network.threads": "3",
            "num.io.threads": "8",
            "socket.send.buffer.bytes": "102400",
            "socket.receive.buffer.bytes": "102400",
            "socket.request.max.bytes": "104857600",
            "log.dirs": "/tmp/kraft-combined-logs",
            "num.partitions": "1",
            "num.recovery.threads.per.data.dir": "2",
            "offsets.topic.replication.factor": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "log.retention.hours": "168",
            "log.segment.bytes": "1073741824",
            "log.retention.check.interval.ms": "300000",
        }
    )
    assert config.unknown == ()
    assert [(str(listener.advertised), listener.is_controller) for listener in config.endpoints] == [
        ("PLAINTEXT://localhost:9092", False),
        ("CONTROLLER://localhost:9093", True),
    ]
