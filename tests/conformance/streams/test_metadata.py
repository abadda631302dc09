"""The instance that has a key: two applications in Python, and one in Python with one of Kafka in the same group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pybroker.client import Admin, Producer
from pybroker.client.administration.topics import GROUP, SET, ConfigChange
from pybroker.streams import (
    NOT_AVAILABLE,
    STRING,
    HostInfo,
    InvalidStateStoreError,
    KafkaStreams,
    KeyQueryMetadata,
    State,
    StreamsBuilder,
    StreamsError,
)
from pybroker.streams.topology.topology import Topology
from tests.conformance.conftest import Server, serving
from tests.support.conditions import wait_until
from tests.support.streams_app import StreamsApp
from tests.support.streams_application import create_topics

pytestmark = pytest.mark.xdist_group("stream applications")

BROKER = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "100",
    "group.streams.assignment.interval.ms": "0",
}
PARTITIONS = 4
WORDS = [f"word-{number}" for number in range(20)]
OWN = (HostInfo("localhost", 7001), HostInfo("localhost", 7002))


@pytest.fixture(scope="module")
def brokers() -> Iterator[Server]:
    with serving(BROKER) as server:
        yield server


def _word_count(name: str) -> Topology:
    """Return the topology of `WordCount.java`."""
    builder = StreamsBuilder()
    words = builder.stream(f"{name}-in", key_serde=STRING, value_serde=STRING).flat_map_values(str.split)
    counts = words.group_by(lambda _, word: word, key_serde=STRING, value_serde=STRING).count(store="counts")
    counts.to_stream().map_values(str).to(f"{name}-out", key_serde=STRING, value_serde=STRING)
    return builder.build()


def _settings(server: Server, name: str, host: HostInfo, directory: Path) -> dict[str, Any]:
    return {
        "application.id": name,
        "bootstrap.servers": server.bootstrap_servers,
        "application.server": f"{host.host}:{host.port}",
        "state.dir": str(directory / str(host.port)),
        "commit.interval.ms": "100",
        "statestore.cache.max.bytes": "0",
    }


def _prepare(server: Server, name: str, **configs: str) -> None:
    create_topics(server.bootstrap_servers, [f"{name}-in", f"{name}-out"], PARTITIONS)
    with Admin(server.bootstrap_servers) as admin:
        admin.alter_configs(name, [ConfigChange(key.replace("_", "."), configs[key], SET) for key in configs], GROUP)
    with Producer(server.bootstrap_servers) as producer:
        for word in WORDS:
            producer.send(f"{name}-in", word.encode())


def _located(app: KafkaStreams) -> dict[str, KeyQueryMetadata]:
    return {word: app.query_metadata_for_key("counts", word, STRING) for word in WORDS}


def _hosts(located: dict[str, KeyQueryMetadata]) -> set[HostInfo]:
    return {found.active_host for found in located.values()}


def test_a_key_is_in_the_store_of_the_instance_that_is_found(brokers: Server, tmp_path: Path) -> None:
    _prepare(brokers, "routed")
    with ExitStack() as stack:
        apps = {
            host: stack.enter_context(
                KafkaStreams(
                    _word_count("routed"), {**_settings(brokers, "routed", host, tmp_path), "num.stream.threads": 2}
                )
            )
            for host in OWN
        }
        one, two = apps.values()
        with pytest.raises(StreamsError, match="cannot be listed in state CREATED: expected RUNNING"):
            one.metadata_for_all_streams_clients()
        one.start()
        two.start()

        def is_complete() -> bool:
            """Whether both instances have tasks, and find the same host of each key."""
            if one.state is not State.RUNNING or two.state is not State.RUNNING:
                return False
            found = _located(one)
            return found == _located(two) and _hosts(found) == set(OWN)

        wait_until(is_complete, within=60, what=lambda: f"{_located(one)} and {_located(two)} agree")
        located = _located(one)
        for host, app in apps.items():
            expected = [(word, 1) for word in sorted(WORDS) if located[word].active_host == host]
            counts = app.store("counts")
            wait_until(lambda: sorted(counts.all()) == expected, within=60, what=f"{expected} at {host}")  # noqa: B023 - waited for at once
        assert not any(found.standby_hosts for found in located.values())
        clients = one.metadata_for_all_streams_clients()
        assert [client.host_info for client in clients] == list(OWN)
        assert one.streams_metadata_for_store("counts") == clients
        sources = [{(it.topic, it.partition) for it in client.topic_partitions} for client in clients]
        assert sources[0].isdisjoint(sources[1])
        assert sources[0] | sources[1] == {
            (topic, index) for topic in ("routed-in", "routed-counts-repartition") for index in range(PARTITIONS)
        }
        with pytest.raises(InvalidStateStoreError, match="unknown state store 'count': expected one of counts"):
            one.query_metadata_for_key("count", "word", STRING)


@pytest.mark.java
def test_kafka_finds_the_same_instance_for_each_key(brokers: Server, tmp_path: Path) -> None:
    _prepare(brokers, "shared", streams_num_standby_replicas="1")
    ours, theirs = OWN
    java_settings = {**_settings(brokers, "shared", theirs, tmp_path), "input": "shared-in", "output": "shared-out"}
    with ExitStack() as stack:
        java = StreamsApp("WordCount", java_settings, tmp_path / "java.log")
        stack.callback(java.end)
        app = stack.enter_context(KafkaStreams(_word_count("shared"), _settings(brokers, "shared", ours, tmp_path)))
        app.start()
        java.wait_for("STATE RUNNING")

        def is_complete() -> bool:
            located = _located(app)
            return _hosts(located) == set(OWN) and all(found.standby_hosts for found in located.values())

        wait_until(is_complete, within=60, what="both instances have tasks and standby tasks")

        def agree() -> bool:
            return _java_lines(java) == [_line(word, found) for word, found in _located(app).items()]

        wait_until(agree, within=60, what=lambda: f"Kafka finds {_located(app)}")


def _java_lines(java: StreamsApp) -> Sequence[str]:
    """Return where the instance of Kafka finds each word."""
    del java.lines[:]
    for word in WORDS:
        java.say(f"key {word}")

    def found() -> list[str]:
        return [line for line in java.lines if line.startswith("KEY ")]

    wait_until(lambda: len(found()) == len(WORDS), within=60, what=lambda: f"a line for each word in {java.lines}")
    return found()


def _line(word: str, found: KeyQueryMetadata) -> str:
    standby = ",".join(f"{host.host}:{host.port}" for host in sorted(found.standby_hosts))
    return f"KEY {word} {found.partition} {found.active_host.host}:{found.active_host.port} [{standby}]"


def test_every_instance_has_a_global_store(brokers: Server, tmp_path: Path) -> None:
    create_topics(brokers.bootstrap_servers, ["names", "pairs"])
    builder = StreamsBuilder()
    names = builder.global_table("names", key_serde=STRING, value_serde=STRING, store="names")
    pairs = builder.stream("pairs", key_serde=STRING, value_serde=STRING)
    pairs.join(names, lambda _key, value: value, lambda value, name: value + name).foreach(lambda _key, _value: None)
    app = KafkaStreams(builder.build(), _settings(brokers, "with-names", OWN[0], tmp_path))
    with app:
        app.start()
        wait_until(
            lambda: app.query_metadata_for_key("names", "1", STRING) != NOT_AVAILABLE, within=60, what="an endpoint"
        )
        assert app.query_metadata_for_key("names", "1", STRING) == KeyQueryMetadata(OWN[0], frozenset(), -1)
        (client,) = app.streams_metadata_for_store("names")
        assert client.state_store_names == {"names"}
