"""Kafka's tools, and ours of their names, about three of our nodes and about three of Apache Kafka's: the same lines.

Ids, ports, directories, times and positions in the metadata log are the clusters' own and left out. What differs
otherwise is named in this file, each with its reason.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from pybench.peers.cluster import ClusterPeer
from pybench.peers.kafka_cluster import KafkaCluster
from pybench.peers.pybroker_cluster import PybrokerCluster
from pybroker.cli.main import main
from pybroker.client import Admin, NewTopic, Producer
from pybroker.client.administration.topics import BROKER
from pybroker.client.errors import BrokerError, ClientError
from pybroker.config.broker import BrokerConfig
from tests.support import kafka_tools, programs
from tests.support.conditions import wait_until

pytestmark = [pytest.mark.java, pytest.mark.process]

_WITHIN_S = 60.0
_RETENTION_MS = "3155760000000"
"""A hundred years: the records of a topic are old, and a pass of retention may come at any time."""
_SETTINGS = {
    # A broker that is killed is fenced by its session there, by its closed connection here.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}
ASSIGNED = {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]}
KAFKAS, OURS = "by Kafka's program", "by our program"
TO_CONTROLLERS = "--bootstrap-controller"
AT_THE_END = ("cluster",)
"""Tools that take the address after their first word."""
NOT_HERE = ("share.version",)
"""Features of parts that are not here."""
OLDER_HERE = ("kraft.version", "metadata.version")
"""Features whose newest level is lower here."""

NOT_SHOWN_THERE = (
    # Kafka's authorizer reads them, and Kafka's broker does not know them.
    *("allow.everyone.if.no.acl.found", "super.users"),
    # Kafka's login reads it, and Kafka's broker does not know it.
    "sasl.oauthbearer.header.urlencode",
    # Kafka's internal settings, and those that it takes as changes only.
    *("auto.create.topics.max.per.request", "group.consumer.regex.refresh.interval.ms", "log.initial.task.delay.ms"),
    *("leader.imbalance.per.broker.percentage", "producer.id.expiration.check.interval.ms"),
    *("follower.replication.throttled.rate", "leader.replication.throttled.rate"),
    *("replica.alter.log.dirs.io.max.bytes.per.second", "unclean.leader.election.interval.ms"),
    # Settings of a newer Kafka.
    *("group.streams.acceptable.recovery.lag", "group.streams.assignors", "group.streams.max.warmup.replicas"),
    *("group.streams.min.task.offset.interval.ms", "group.streams.num.warmup.replicas"),
    *("group.streams.rack.aware.assignment.tags", "group.streams.task.offset.interval.ms"),
    "group.streams.topology.description.plugin.class",
)
"""Settings that Kafka has and does not show."""
SET_BY_THE_PEERS = (
    *("advertised.listeners", "controller.quorum.voters", "inter.broker.listener.name", "listeners", "log.dir"),
    *("listener.security.protocol.map", "share.coordinator.state.topic.replication.factor"),
)
"""Settings that the files of the two clusters have each in its own way, and a default that names the program."""
OTHER_DEFAULTS = ("replica.socket.receive.buffer.bytes",)
"""Settings whose default differs, and whose words say why (docs/adr/0089)."""


_numbers = itertools.count(1)


class Clusters(NamedTuple):
    """Both clusters."""

    kafka: ClusterPeer
    ours: ClusterPeer

    def both(self) -> tuple[ClusterPeer, ClusterPeer]:
        return self.kafka, self.ours


class Ran(NamedTuple):
    """What a run of a tool left."""

    status: int
    lines: list[str]


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    programs.kafka_tools()
    directory = tmp_path_factory.mktemp("clusters")
    with ExitStack() as stack:
        # The release whose metadata.version is the one that is finalized here.
        kafka = KafkaCluster(
            directory / "kafka",
            _SETTINGS,
            heap_mb=256,
            format_options=("--release-version", "4.0"),
            ready_timeout_s=300,
        )
        started = Clusters(
            stack.enter_context(kafka),
            stack.enter_context(PybrokerCluster(directory / "ours", _SETTINGS)),
        )
        yield started


@pytest.fixture
def topic(clusters: Clusters, request: pytest.FixtureRequest) -> Iterator[str]:
    """A topic of both clusters with three partitions, each with three replicas and ten records."""
    # A name of its own: what is deleted of another topic is not counted for this one.
    name = f"orders-{next(_numbers)}"
    for cluster in clusters.both():
        with Admin(cluster.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(name, assignments=ASSIGNED, configs={"retention.ms": _RETENTION_MS})])
        with Producer(cluster.bootstrap_servers) as producer:
            for number in range(30):
                producer.send(name, b"x" * 100, partition=number % 3, timestamp_ms=1_700_000_000_000)
        wait_until(partial(replicas_are_in_sync, cluster), within=_WITHIN_S, what="all replicas are in sync")
    yield name
    for cluster in clusters.both():
        with Admin(cluster.bootstrap_servers) as admin:
            admin.delete_topics([name])
        wait_until(partial(has_no_topics, cluster), within=_WITHIN_S, what="the topic is gone")


class Alike:
    """Asserts that a tool prints the same about both clusters, by Kafka's program and by ours on ours."""

    def __init__(self, clusters: Clusters, programs: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
        self.clusters = clusters
        self._programs = programs
        self._capsys = capsys

    def __call__(self, tool: str, *words: str, only: Callable[[str], str | None] = lambda line: line) -> Ran:
        """Run it, and return what Kafka's program printed of Kafka's cluster; `only` changes lines, or drops them."""
        expected = self._run(KAFKAS, self.clusters.kafka, tool, words, only)
        for program in self._programs:
            assert self._run(program, self.clusters.ours, tool, words, only) == expected, (program, tool, *words)
        return expected

    def _run(
        self, program: str, cluster: ClusterPeer, tool: str, words: tuple[str, ...], only: Callable[[str], str | None]
    ) -> Ran:
        whole = addressed(cluster, tool, words)
        if program == KAFKAS:
            ran = kafka_tools.run(tool, *whole)
            status, out = ran.returncode, ran.stdout
        else:
            self._capsys.readouterr()
            status, out = main([tool, *whole]), self._capsys.readouterr().out
        return Ran(status, [kept for line in comparable(cluster, out) if (kept := only(line)) is not None])


@pytest.fixture
def alike(clusters: Clusters, capsys: pytest.CaptureFixture[str]) -> Alike:
    """Compares by both programs, for what changes nothing."""
    return Alike(clusters, (KAFKAS, OURS), capsys)


@pytest.fixture(params=[KAFKAS, OURS])
def changed_alike(clusters: Clusters, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest) -> Alike:
    """Compares by one program, for changes, which are made once in each cluster."""
    return Alike(clusters, (request.param,), capsys)


def addressed(cluster: ClusterPeer, tool: str, words: tuple[str, ...]) -> list[str]:
    """The words of a run: brokers are asked, or controllers where `TO_CONTROLLERS` is the first word."""
    at = ["--bootstrap-server", cluster.bootstrap_servers]
    if words[:1] == (TO_CONTROLLERS,):
        at, words = [TO_CONTROLLERS, cluster.bootstrap_controllers], words[1:]
    return [*words, *at] if tool in AT_THE_END else [*at, *words]


def comparable(cluster: ClusterPeer, text: str) -> list[str]:
    """The lines of an output without what is the cluster's own."""
    for number, directory in enumerate(cluster.log_directories, 1):
        text = text.replace(str(directory), f"directory-{number}")
    text = re.sub(r"(?<![\w-])[\w-]{22}(?![\w-])", "ID", text)
    text = re.sub(r"\b1\d{12}\b", "TIME", text)
    text = re.sub(r"\b\d{5}\b", "PORT", text)
    return [re.sub(r" +", " ", line).rstrip() for line in text.splitlines()]


def has_no_topics(cluster: ClusterPeer) -> bool:
    with Admin(cluster.bootstrap_servers) as admin:
        return not admin.list_topics()


def replicas_are_in_sync(cluster: ClusterPeer) -> bool:
    try:
        with Admin(cluster.bootstrap_servers) as admin:
            described = admin.describe_topics(admin.list_topics())
    except (BrokerError, ClientError):
        return False
    parts = [part for one in described for part in one.partitions]
    return bool(parts) and all(part.leader >= 0 and set(part.isr) == set(part.replicas) for part in parts)


def replicas_have_records(cluster: ClusterPeer, topic: str) -> bool:
    """Return whether the logs of all replicas are as long, and not empty."""
    try:
        with Admin(cluster.bootstrap_servers) as admin:
            described = admin.describe_log_dirs([1, 2, 3])
    except (BrokerError, ClientError):
        return False
    found = [replica for paths in described.values() for path in paths.values() for replica in path.replicas.items()]
    sizes = [info.size for partition, info in found if partition.topic == topic]
    return len(sizes) == 9 and len(set(sizes)) == 1 and sizes[0] > 0


def test_topics(alike: Alike, topic: str) -> None:
    assert len(alike("topics", "--describe").lines) >= 4
    alike("topics", "--describe", "--topic", topic)
    alike("topics", "--list")
    for which in ("under-replicated", "unavailable", "under-min-isr", "at-min-isr"):
        assert alike("topics", "--describe", f"--{which}-partitions").lines == []


def test_a_topic_that_cannot_be_made(clusters: Clusters, topic: str) -> None:
    """Our tool says on standard error what Kafka's prints, and in one line."""
    for words in (("--topic", topic), ("--topic", "wide", "--replication-factor", "5"), ("--topic", "a/b")):
        runs = [kafka_tools.run("topics", *addressed(at, "topics", ("--create", *words))) for at in clusters.both()]
        assert [run.returncode for run in runs] == [1, 1]
        assert runs[0].stdout == runs[1].stdout != ""


def test_the_cluster(alike: Alike, topic: str) -> None:
    alike("cluster", "cluster-id")
    assert len(alike("cluster", "list-endpoints").lines) == 4
    alike("cluster", "list-endpoints", "--include-fenced-brokers")


def test_the_metadata_quorum(alike: Alike, topic: str) -> None:
    def without_positions(line: str) -> str:
        label, colon, _ = line.partition(":")
        if label in ("LeaderId", "LeaderEpoch", "HighWatermark", "MaxFollowerLag", "MaxFollowerLagTimeMs"):
            return label + colon
        return re.sub(r"^\d+ \t", "N\t", re.sub(r"\t\d+ *(?=\t)", "\tN", line)).replace("TIME", "N")

    alike("metadata-quorum", "describe", "--status", only=without_positions)
    assert len(alike("metadata-quorum", "describe", "--replication", only=without_positions).lines) == 4


def test_controllers_that_are_asked(alike: Alike, topic: str, tmp_path: Path) -> None:
    """KIP-919: what controllers answer without a broker between.

    Kafka's fail at the settings of one broker once somebody has changed them, so that those of all are compared.
    """
    alike("cluster", TO_CONTROLLERS, "cluster-id")
    assert len(alike("cluster", TO_CONTROLLERS, "list-endpoints").lines) == 4
    alike("configs", TO_CONTROLLERS, "--describe", "--broker-defaults")
    alike("reassign-partitions", TO_CONTROLLERS, "--list")
    plan = tmp_path / "plan.json"
    parts = [{"topic": topic, "partition": 0, "replicas": [2, 1, 3]}]
    plan.write_text(json.dumps({"version": 1, "partitions": parts}))
    named = ("--reassignment-json-file", str(plan))
    assert alike("reassign-partitions", TO_CONTROLLERS, "--cancel", *named).status == 0
    assert alike("reassign-partitions", TO_CONTROLLERS, "--cancel", "--preserve-throttles", *named).status == 0
    assert alike("reassign-partitions", TO_CONTROLLERS, "--execute", *named).status == 1
    assert alike("configs", TO_CONTROLLERS, "--describe", "--topic", topic).status == 1


def test_settings_that_controllers_change(changed_alike: Alike, topic: str) -> None:
    at = ("configs", TO_CONTROLLERS)
    for of in (("--broker", "3"), ("--broker-defaults",), ("--topic", topic)):
        key = "retention.ms" if "--topic" in of else "log.cleaner.threads"
        assert changed_alike(*at, "--alter", *of, "--add-config", f"{key}=2").status == 0
        assert changed_alike(*at, "--alter", *of, "--delete-config", key).status == 0


def test_features(clusters: Clusters, topic: str) -> None:
    """Features of parts that are not here are left out, as are the newest levels where ours are lower.

    Kafka enables streams groups with a later release than the one of its cluster here.
    """

    def described(cluster: ClusterPeer) -> list[str]:
        words = addressed(cluster, "features", ("describe",))
        lines = kafka_tools.run("features", *words).stdout.splitlines()
        kept = [re.sub(r"Epoch: \d+", "Epoch: N", line) for line in lines if line.split()[1] not in NOT_HERE]
        newest = re.compile(r"SupportedMaxVersion: \S+ *")
        kept = [newest.sub("", line) if line.split()[1] in OLDER_HERE else line for line in kept]
        level = re.compile(r"FinalizedVersionLevel: \d+ *")
        return [level.sub("", line) if line.split()[1] == "streams.version" else line for line in kept]

    assert described(clusters.ours) == described(clusters.kafka)


def test_a_change_of_features(changed_alike: Alike, topic: str) -> None:
    assert changed_alike("features", "upgrade", "--feature", "group.version=1").status == 0
    assert changed_alike("features", "downgrade", "--feature", "group.version=0", "--dry-run").status == 0
    refused = changed_alike(
        *("features", "upgrade", "--feature", "group.version=9"),
        only=lambda line: re.sub(r"Local controller \d", "Local controller N", line),
    )
    assert refused.status == 1


def test_log_directories(alike: Alike, topic: str) -> None:
    def ordered(line: str) -> str:
        """Order the partitions of the topic in a line of JSON; logs of a deleted topic may be there for a while."""
        if not line.startswith("{"):
            return line
        response = json.loads(line)
        for broker in response["brokers"]:
            for directory in broker["logDirs"]:
                own = [one for one in directory["partitions"] if one["partition"].startswith(f"{topic}-")]
                directory["partitions"] = sorted(own, key=lambda one: one["partition"])
        return json.dumps(response)

    for cluster in alike.clusters.both():
        wait_until(partial(replicas_have_records, cluster, topic), within=_WITHIN_S, what="records in all replicas")
    assert len(alike("log-dirs", "--describe", only=ordered).lines) == 3
    alike("log-dirs", "--describe", "--broker-list", "2", "--topic-list", topic, only=ordered)
    alike("log-dirs", "--describe", "--broker-list", "2,9", "--topic-list", topic, only=ordered)


def test_settings(changed_alike: Alike, topic: str) -> None:
    changed_alike("configs", "--describe", "--entity-type", "brokers")
    changed = ("configs", "--alter", "--broker", "2")
    assert changed_alike(*changed, "--add-config", "log.cleaner.threads=2").status == 0
    for cluster in changed_alike.clusters.both():
        wait_until(partial(has_two_threads, cluster), within=_WITHIN_S, what="the broker has the setting")
    changed_alike("configs", "--describe", "--broker", "2")
    assert changed_alike(*changed, "--delete-config", "log.cleaner.threads").status == 0
    everything = changed_alike(
        "configs",
        *("--describe", "--topic", topic, "--all"),
        # Ours alone (docs/adr/0012).
        only=lambda line: None if line.lstrip().startswith("flush=") else line,
    )
    assert any(f"retention.ms={_RETENTION_MS}" in line for line in everything.lines)


def test_all_settings_of_a_broker(alike: Alike, topic: str) -> None:
    """Keys of parts that are not here, and ours, are left out; so are addresses, and what PybrokerCluster names."""

    left_out = {*NOT_SHOWN_THERE, *SET_BY_THE_PEERS, *OTHER_DEFAULTS}

    def shared(line: str) -> str | None:
        name = line.strip().partition("=")[0]
        key = BrokerConfig.keys.get(name)
        is_compared = key is not None and not key.ours and name not in left_out
        return line if is_compared else None

    shown = alike("configs", "--describe", "--all", "--broker", "2", only=shared)
    assert shown.status == 0
    assert len(shown.lines) > 190
    assert any("broker.id=2" in line for line in shown.lines)


def has_two_threads(cluster: ClusterPeer) -> bool:
    """Whether the cleaner of broker 2 has two threads."""
    with Admin(cluster.bootstrap_servers) as admin:
        return admin.describe_configs("2", BROKER)["log.cleaner.threads"].value == "2"


def test_elections(changed_alike: Alike, topic: str) -> None:
    of_one = ("--topic", topic, "--partition", "0")
    assert changed_alike("leader-election", "--election-type", "preferred", *of_one).lines
    changed_alike("leader-election", "--election-type", "unclean", *of_one)
    changed_alike("leader-election", "--election-type", "preferred", "--all-topic-partitions")


def test_reassignments(changed_alike: Alike, topic: str, tmp_path: Path) -> None:
    def plan(name: str, replicas: dict[int, list[int]]) -> str:
        parts = [{"topic": topic, "partition": index, "replicas": wanted} for index, wanted in replicas.items()]
        path = tmp_path / name
        path.write_text(json.dumps({"version": 1, "partitions": parts}))
        return str(path)

    def completed() -> bool:
        return all(is_completed(cluster) for cluster in changed_alike.clusters.both())

    throttled = ("--throttle", "100000000", "--replica-alter-log-dirs-throttle", "100000000")
    plans = ((plan("fewer.json", {0: [2, 1]}), throttled), (plan("back.json", {0: ASSIGNED[0]}), ()))
    for file, limits in plans:
        named = ("--reassignment-json-file", file)
        assert changed_alike("reassign-partitions", "--execute", *named, *limits).status == 0
        assert changed_alike("reassign-partitions", "--execute", "--additional", *named, *limits).status == 0
        wait_until(completed, within=_WITHIN_S, what="the reassignments are complete")
        assert "is completed" in "".join(changed_alike("reassign-partitions", "--verify", *named).lines)
        changed_alike("reassign-partitions", "--list")
        changed_alike("topics", "--describe", "--topic", topic)
    changed_alike("reassign-partitions", "--cancel", *named)


def test_a_plan_that_is_proposed(alike: Alike, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "topics.json"
    file.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))

    def counted(line: str) -> str:
        """Which replicas are proposed is drawn; how many each partition and each broker has is not."""
        if not line.startswith("{"):
            return line
        parts = json.loads(line)["partitions"]
        each = sorted((part["topic"], part["partition"], len(part["replicas"])) for part in parts)
        return json.dumps([each, sorted(broker for part in parts for broker in part["replicas"])])

    named = ("--generate", "--topics-to-move-json-file", str(file), "--broker-list")
    assert alike("reassign-partitions", *named, "1,2,3", only=counted).status == 0
    for brokers in ("1,2", "1,2,9"):  # ours says why on standard error
        assert alike("reassign-partitions", *named, brokers, only=lambda _: None).status == 1
    assert alike("reassign-partitions", *named, "1,2,3", "--disable-rack-aware", only=counted).status == 0


def is_completed(cluster: ClusterPeer) -> bool:
    with Admin(cluster.bootstrap_servers) as admin:
        return not admin.list_partition_reassignments() and replicas_are_in_sync(cluster)


def test_a_dead_broker_and_its_return(clusters: Clusters, alike: Alike, topic: str) -> None:
    for cluster in clusters.both():
        cluster.kill_node(3)
    for cluster in clusters.both():
        wait_until(partial(misses_the_third, cluster, topic), within=_WITHIN_S, what="one is missed")
    alike("topics", "--describe", "--topic", topic)
    for which in ("under-replicated", "unavailable", "under-min-isr", "at-min-isr"):
        alike("topics", "--describe", f"--{which}-partitions")
    alike("cluster", "list-endpoints")
    alike("leader-election", "--election-type", "preferred", "--topic", topic, "--partition", "2")
    for cluster in clusters.both():
        cluster.start_node(3)
    for cluster in clusters.both():
        wait_until(partial(replicas_are_in_sync, cluster), within=_WITHIN_S, what="all replicas are in sync")
    alike("topics", "--describe", "--under-replicated-partitions")


def misses_the_third(cluster: ClusterPeer, topic: str) -> bool:
    """Whether brokers 1 and 2 alone are in sync in every partition of a topic."""
    with Admin(cluster.bootstrap_servers) as admin:
        (described,) = admin.describe_topics([topic])
    return all(set(part.isr) == {1, 2} for part in described.partitions)
