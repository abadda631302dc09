"""A cluster of three nodes of Apache Kafka goes over to pybroker and back, with its directories and its files.

All nodes move together, broker and controller each; docs/guides/moving.md has the steps. It is long: `make moving`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pybench.peers.kafka_cluster import KafkaCluster
from pybroker.client import Admin, Consumer, NewTopic, OffsetAndMetadata, Producer, TopicPartition
from pybroker.client.administration.topics import BROKER, LATEST, SET, TOPIC, ConfigChange
from pybroker.controller.quorum.batches import DIRECTORY_NAME
from pybroker.controller.quorum.snapshot.snapshots import newest_snapshot
from tests.support import programs
from tests.support.conditions import wait_until
from tests.support.processes import PROGRAM

pytestmark = [
    pytest.mark.java,
    pytest.mark.process,
    pytest.mark.timeout(900),
    pytest.mark.skipif("PYBROKER_MOVING" not in os.environ, reason="it takes minutes: make moving"),
]

NODES = (1, 2, 3)
KAFKA, PYBROKER = "kafka", "pybroker"
_WITHIN_S = 120
_STATIC, _DEFAULT = 4, 5
"""Sources of settings that nobody has changed in the metadata."""
SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
TRIMMING = {
    # A week of Kafka's in a minute: snapshots are made, and the metadata log below them goes.
    "metadata.log.segment.ms": "500",
    "metadata.log.max.snapshot.interval.ms": "2000",
    "metadata.max.retention.ms": "1000",
}


class Found(NamedTuple):
    """What a cluster has, as clients see it."""

    cluster: Any
    topics: Any
    records: Any
    configs: Any
    offsets: Any
    quotas: Any


@dataclass
class Moves:
    """What was seen on the way."""

    left: dict[str, Found] = field(default_factory=dict)
    """By who had it until then."""
    found: dict[str, Found] = field(default_factory=dict)
    """By who has it now."""
    refused: list[str] = field(default_factory=list)
    """What nodes said that did not start."""


class Cluster(KafkaCluster):
    """Kafka's nodes, and ours with the same files."""

    def __init__(self, directory: Path, settings: Mapping[str, str]) -> None:
        super().__init__(directory, settings, heap_mb=256, ready_timeout_s=300)
        self.directory = directory

    def stop_together(self) -> None:
        """End Kafka's nodes: all at a time, as the last of them would wait for a quorum."""
        for pid in self.pids:
            os.kill(pid, signal.SIGTERM)
        for number in NODES:
            self.stop_node(number)

    def metadata(self, number: int) -> Path:
        return self.log_directories[number - 1] / DIRECTORY_NAME

    def launch(self, number: int, *overrides: str) -> subprocess.Popen[str]:
        """Begin one of ours."""
        words = [word for one in overrides for word in ("--override", one)]
        config = self.directory / f"broker-{number}" / "server.properties"
        with (self.directory / f"{number}.log").open("w") as log:
            return subprocess.Popen(
                [PROGRAM, "start", "--config", config, *words], stdout=subprocess.PIPE, stderr=log, text=True
            )

    def log_of(self, number: int) -> str:
        return (self.directory / f"{number}.log").read_text()

    @contextlib.contextmanager
    def ours(self, *numbers: int, overrides: tuple[str, ...] = ()) -> Iterator[None]:
        """Our nodes, from when they are ready to their clean end."""
        nodes = [self.launch(number, *overrides) for number in numbers]
        try:
            for number, node in zip(numbers, nodes, strict=True):
                assert node.stdout is not None
                assert "ready" in node.stdout.readline(), self.log_of(number)
            yield
            for node in nodes:
                node.terminate()
            assert [node.wait(_WITHIN_S) for node in nodes] == [0] * len(nodes)
        finally:
            for node in nodes:
                node.kill()
                node.communicate()


def fill(servers: str, here: str) -> None:
    """Leave one of each, under names that begin with who has it."""
    topic = f"{here}-topic"
    with Admin(servers) as admin:
        admin.create_topics([NewTopic(topic, 6, 3, configs={"retention.ms": "987654321"})])
        admin.wait_for_leaders(topic)
        with Producer(servers, {"acks": "all"}) as producer:
            for number in range(300):
                producer.send(topic, b"value-%d" % number, b"key-%d" % number, headers=[("header", b"1")])
        admin.alter_configs(topic, [ConfigChange("max.message.bytes", "2000000", SET)], TOPIC)
        admin.alter_configs("", [ConfigChange("log.retention.ms", "777777777", SET)], BROKER)
        admin.alter_configs("2", [ConfigChange("message.max.bytes", "3000000", SET)], BROKER)
        admin.alter_client_quotas({"user": here}, {"producer_byte_rate": 1e6})
        admin.alter_group_offsets(f"{here}-kept", {TopicPartition(topic, 1): OffsetAndMetadata(7, metadata="here")})
    with Consumer(servers, {"group.id": f"{here}-group", "auto.offset.reset": "earliest"}) as consumer:
        consumer.subscribe([topic])
        wait_until(lambda: consumer.poll(1.0), within=_WITHIN_S, what="the group reads")
        consumer.commit()


def look(servers: str, groups: int) -> Found:
    """Ask for everything but Kafka's own topics, once the coordinators know so many groups."""
    with Admin(servers) as admin:
        wait_until(lambda: len(admin.list_groups()) >= groups, within=_WITHIN_S, what=f"{groups} groups are loaded")
        names = admin.list_topics()
        described = {name: admin.wait_for_leaders(name) for name in names}
        partitions = [TopicPartition(name, one.index) for name in names for one in described[name].partitions]
        ends = {one: end.offset for one, end in admin.list_offsets(dict.fromkeys(partitions, LATEST)).items()}
        resources = [*((TOPIC, name) for name in names), (BROKER, ""), *((BROKER, str(number)) for number in NODES)]
        return Found(
            cluster=admin.describe_cluster().cluster_id,
            topics={
                name: (one.topic_id, [(p.index, p.replicas) for p in one.partitions]) for name, one in described.items()
            },
            records=read(servers, ends),
            configs={
                (kind, name): {
                    entry.name: entry.value
                    for entry in admin.describe_configs(name, kind).values()
                    if entry.source not in (_STATIC, _DEFAULT)
                }
                for kind, name in resources
            },
            offsets={one.group_id: admin.list_group_offsets(one.group_id) for one in admin.list_groups()},
            quotas=admin.describe_client_quotas(),
        )


def read(servers: str, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, list[Any]]:
    """Every record of partitions that begin at 0."""
    found: dict[TopicPartition, list[Any]] = {one: [] for one in ends}
    with Consumer(servers, {"auto.offset.reset": "earliest"}) as consumer:
        consumer.assign(list(ends))

        def is_complete() -> bool:
            for record in consumer.poll(1.0):
                row = record.offset, record.key, record.value, record.timestamp_ms, tuple(record.headers)
                found[TopicPartition(record.topic, record.partition)].append(row)
            return all(len(found[one]) >= end for one, end in ends.items())

        wait_until(is_complete, within=_WITHIN_S, what="all records are read")
    return found


def are_in_sync(servers: str) -> None:
    """Wait until every replica of every topic is in sync."""
    with Admin(servers) as admin:
        names = admin.list_topics()
        wait_until(
            lambda: all(
                len(one.isr) == len(one.replicas)
                for topic in map(admin.wait_for_leaders, names)
                for one in topic.partitions
            ),
            within=_WITHIN_S,
            what="all replicas are in sync",
        )


def is_trimmed(cluster: Cluster) -> bool:
    """Whether no node has the beginning of the metadata log."""
    logs = [sorted(path.name for path in cluster.metadata(number).glob("*.log")) for number in NODES]
    return all(names and names[0] != f"{0:020}.log" for names in logs)


def prepare(cluster: Cluster, moves: Moves) -> None:
    """What docs/guides/moving.md has for a metadata log without its beginning."""
    ends = {}
    for number in NODES:
        node = cluster.launch(number)
        assert node.wait(_WITHIN_S) == 1
        node.communicate()
        reported = cluster.log_of(number)
        moves.refused.append(reported)
        words = reported.partition("The log ends in epoch ")[2].split()
        ends[number] = int(words[0]), int(words[3].rstrip("."))
    newest = max(NODES, key=ends.__getitem__)
    voter = next(one for one in cluster.voters.split(",") if one.startswith(f"{newest}@"))
    with cluster.ours(newest, overrides=(f"controller.quorum.voters={voter}",)):
        pass
    made = newest_snapshot(cluster.metadata(newest))
    assert made is not None
    assert made.raft_index > 0
    for number in NODES:
        if number != newest:
            shutil.rmtree(cluster.metadata(number))
            shutil.copytree(cluster.metadata(newest), cluster.metadata(number))


@pytest.fixture(scope="module", params=["whole", "trimmed"])
def moves(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Moves:
    programs.kafka_tools()
    trims = request.param == "trimmed"
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), {**SETTINGS, **(TRIMMING if trims else {})})
    seen, servers = Moves(), cluster.bootstrap_servers
    with cluster:
        fill(servers, KAFKA)
        seen.left[KAFKA] = look(servers, 2)
        if trims:  # Kafka looks once a minute.
            wait_until(lambda: is_trimmed(cluster), within=180, what="Kafka has removed the log's beginning")
        cluster.stop_together()
    if trims:
        prepare(cluster, seen)
    with cluster.ours(*NODES):
        seen.found[PYBROKER] = look(servers, 2)
        fill(servers, PYBROKER)
        are_in_sync(servers)
        seen.left[PYBROKER] = look(servers, 4)
    with cluster:
        seen.found[KAFKA] = look(servers, 4)
        fill(servers, "again")
        cluster.stop_together()
    return seen


@pytest.mark.parametrize(("before", "after"), [(KAFKA, PYBROKER), (PYBROKER, KAFKA)], ids=["there", "back"])
def test_what_one_cluster_has_left_the_other_finds(moves: Moves, before: str, after: str) -> None:
    left, found = moves.left[before], moves.found[after]
    assert all(left)
    lost = {name: was for name, was in left._asdict().items() if getattr(found, name) != was}
    assert lost == {}


def test_voters_that_cannot_count_alike_say_what_to_do(moves: Moves) -> None:
    for reported in moves.refused:
        assert "Start it as the only one (controller.quorum.voters)" in reported
