"""Kafka Streams applications of Apache Kafka as members of streams groups (KIP-1071)."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from pybench.peers import java
from pybroker.cli.main import main
from pybroker.client import Admin, Consumer, NewTopic, Producer, TopicPartition
from pybroker.client.administration.streams_groups import StreamsGroupDescription, StreamsTasks
from pybroker.client.administration.topics import GROUP, LATEST, SET, ConfigChange
from tests.conformance.conftest import AGAINST_KAFKA, Server, serving
from tests.support import programs
from tests.support.conditions import wait_until
from tests.support.streams_app import StreamsApp

pytestmark = [
    pytest.mark.java,
    pytest.mark.skipif(AGAINST_KAFKA, reason="the application is newer than this Kafka"),
]

WITHIN_S = 60
PARTITIONS = 4
SETTINGS = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.min.heartbeat.interval.ms": "200",
    "group.streams.heartbeat.interval.ms": "200",
    "group.streams.min.session.timeout.ms": "3000",
    "group.streams.session.timeout.ms": "3000",
    "group.streams.assignment.interval.ms": "0",
}
FIRST, SECOND, THIRD = "the cat and the dog", "the dog and a bird", "a cat"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A broker that notices a killed member after three seconds."""
    with serving(SETTINGS) as one:
        yield one


class WordCounts:
    """An application, its topics, and its instances."""

    def __init__(self, server: Server, name: str, directory: Path, guarantee: str) -> None:
        self.name = name
        self._address = server.bootstrap_servers
        self._directory = directory
        self._guarantee = guarantee
        self._stack = ExitStack()
        self._sent = Counter[str]()
        with Admin(self._address) as admin:
            admin.create_topics([NewTopic(f"{name}-in", PARTITIONS, -1), NewTopic(f"{name}-out", 1, -1)])
            for kind in ("in", "out"):
                admin.wait_for_leaders(f"{name}-{kind}")

    def start(self, instance: str, **settings: str) -> StreamsApp:
        """Start an instance."""
        given = {
            "application.id": self.name,
            "bootstrap.servers": self._address,
            "client.id": instance,
            "state.dir": str(self._directory / instance),
            "processing.guarantee": self._guarantee,
            "input": f"{self.name}-in",
            "output": f"{self.name}-out",
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
        app = StreamsApp("WordCount", given, self._directory / f"{instance}.log")
        self._stack.callback(app.end)
        return app

    def send(self, *lines: str) -> None:
        """Send lines, to all partitions."""
        with Producer(self._address) as producer:
            for number, line in enumerate(lines):
                producer.send(f"{self.name}-in", line.encode(), partition=number % PARTITIONS)
            producer.flush()
        self._sent.update(word for line in lines for word in line.split())

    def check_counts(self) -> None:
        """Wait until the last count of each word is the number of words sent."""
        expected = {word: str(count) for word, count in self._sent.items()}
        found: dict[str, str] = {}
        settings = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
        with Consumer(self._address, settings) as consumer:
            consumer.assign([TopicPartition(f"{self.name}-out", 0)])

            def complete() -> bool:
                for record in consumer.poll(0.2):
                    found[(record.key or b"").decode()] = (record.value or b"").decode()
                return found == expected

            wait_until(complete, within=WITHIN_S, what=lambda: f"{expected}, but {found}")

    def describe(self) -> StreamsGroupDescription:
        """The description of the group."""
        with Admin(self._address) as admin:
            return admin.describe_streams_groups([self.name])[self.name]

    def exists(self) -> bool:
        """Whether the first member has joined."""
        with Admin(self._address) as admin:
            return self.name in [group.group_id for group in admin.list_groups(types=("streams",))]

    def wait_for_members(self, count: int) -> None:
        """Wait until the group is stable with this number of members, which all have active tasks."""

        def settled() -> bool:
            if not self.exists():
                return False
            group = self.describe()
            busy = [member for member in group.members if member.assignment.active]
            return group.state == "Stable" and len(busy) == len(group.members) == count

        wait_until(settled, within=WITHIN_S, what=f"{count} members of {self.name}")

    def wait_for_commits(self) -> None:
        """Wait until all records of the input and of the repartition topic are committed."""
        topics = f"{self.name}-in", f"{self.name}-counts-repartition"
        partitions = [TopicPartition(topic, index) for topic in topics for index in range(PARTITIONS)]
        with Admin(self._address) as admin:

            def committed() -> bool:
                ends = admin.list_offsets(dict.fromkeys(partitions, LATEST))
                offsets = admin.list_group_offsets(self.name, partitions)
                committed_offsets = {p: offset.offset for p, offset in offsets.items()}
                # A partition without records has no committed offset.
                return {p: end.offset for p, end in ends.items() if end.offset} == committed_offsets

            wait_until(committed, within=WITHIN_S, what="all records are committed")

    def close(self) -> None:
        """End all instances."""
        self._stack.close()


@pytest.fixture
def count_words(server: Server, topic_name: str, tmp_path: Path) -> Iterator[Callable[[str], WordCounts]]:
    """Makes an application with a processing guarantee."""
    with ExitStack() as stack:

        def make(guarantee: str) -> WordCounts:
            counts = WordCounts(server, topic_name, tmp_path, guarantee)
            stack.callback(counts.close)
            return counts

        yield make


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_words_are_counted_once_over_leaving_and_dying_instances(
    count_words: Callable[[str], WordCounts], guarantee: str
) -> None:
    counts = count_words(guarantee)
    counts.send(*[FIRST] * PARTITIONS)
    one = counts.start("one")
    counts.check_counts()
    two = counts.start("two")
    counts.wait_for_members(2)
    counts.send(*[SECOND] * PARTITIONS)
    counts.check_counts()
    one.say("close")
    one.wait_for("CLOSED")
    counts.wait_for_members(1)
    three = counts.start("three")
    counts.wait_for_members(2)
    counts.send(*[THIRD] * PARTITIONS)
    counts.check_counts()
    if guarantee == "at_least_once":
        counts.wait_for_commits()
    two.kill()
    counts.send(*[FIRST] * PARTITIONS)
    counts.check_counts()
    counts.wait_for_members(1)
    three.say("close")
    three.wait_for("CLOSED")


def test_internal_topics_have_the_counts_and_configs_of_the_topology(
    count_words: Callable[[str], WordCounts], server: Server
) -> None:
    counts = count_words("at_least_once")
    counts.start("one").wait_for("STATE RUNNING")
    repartition, changelog = f"{counts.name}-counts-repartition", f"{counts.name}-counts-changelog"
    group = counts.describe()
    parts = {part.id: part for part in group.subtopologies}
    assert parts["0"].source_topics == (f"{counts.name}-in",)
    assert parts["0"].repartition_sink_topics == (repartition,)
    assert [(topic.name, topic.partitions) for topic in parts["1"].repartition_source_topics] == [(repartition, 4)]
    assert [(topic.name, topic.partitions) for topic in parts["1"].state_changelog_topics] == [(changelog, 4)]
    with Admin(server.bootstrap_servers) as admin:
        described = admin.describe_topics([repartition, changelog])
        assert [len(topic.partitions) for topic in described] == [PARTITIONS, PARTITIONS]


Printed = Callable[..., tuple[list[str], list[str]]]


@pytest.fixture
def both(server: Server, capsys: pytest.CaptureFixture[str]) -> Printed:
    """Runs Kafka's tool for streams groups, then ours: the lines that each printed on standard output."""
    programs.kafka_tools()

    def run(*arguments: str) -> tuple[list[str], list[str]]:
        words = ("--bootstrap-server", server.bootstrap_servers, *arguments)
        theirs = subprocess.run(
            [*java.streams_group_java_command("org.apache.kafka.tools.streams.StreamsGroupCommand"), *words],
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
        capsys.readouterr()
        assert main(["streams-groups", *words]) == theirs.returncode, theirs.stderr
        return capsys.readouterr().out.splitlines(), theirs.stdout.splitlines()

    return run


def test_the_tool_prints_the_lines_of_kafkas_tool(count_words: Callable[[str], WordCounts], both: Printed) -> None:
    """Described with two members, of which none has standby tasks, and then without members."""
    counts = count_words("at_least_once")
    counts.send(*[FIRST] * PARTITIONS)
    one, two = counts.start("one"), counts.start("two")
    counts.wait_for_members(2)
    counts.check_counts()
    counts.wait_for_commits()
    group = ("--group", counts.name)
    for what in (
        ["--list"],
        ["--list", "--state"],
        ["--list", "--state", "stable,notready"],
        ["--describe", *group],
        ["--describe", *group, "--verbose"],
        ["--describe", *group, "--members"],
        ["--describe", *group, "--members", "--verbose"],
        ["--describe", *group, "--state"],
        ["--describe", *group, "--state", "--verbose"],
        ["--describe", *group, "--topology"],
        ["--delete", *group],
        ["--reset-offsets", *group, "--all-input-topics", "--to-earliest", "--dry-run"],
        ["--delete-offsets", *group, "--input-topic", f"{counts.name}-in"],
    ):
        ours, theirs = both(*what)
        assert (what, sorted(ours)) == (what, sorted(theirs))
        assert len(ours) >= 1, what
    for app in (one, two):
        app.say("close")
        app.wait_for("CLOSED")
    for what in (
        ["--describe", *group],
        ["--describe", *group, "--members"],
        ["--describe", *group, "--state"],
        ["--reset-offsets", *group, "--all-input-topics", "--to-earliest", "--dry-run"],
        ["--reset-offsets", *group, "--input-topic", f"{counts.name}-in:0,1", "--shift-by", "-1", "--dry-run"],
        ["--reset-offsets", *group, "--input-topic", f"{counts.name}-in", "--to-latest", "--dry-run", "--export"],
        ["--reset-offsets", *group, "--all-input-topics", "--to-offset", "1", "--execute"],
        ["--delete-offsets", *group, "--input-topic", f"{counts.name}-in:3", "--input-topic", "missing"],
    ):
        ours, theirs = both(*what)
        assert (what, ours) == (what, theirs)


def test_groups_are_deleted_with_their_internal_topics(
    count_words: Callable[[str], WordCounts], server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = count_words("at_least_once")
    one = counts.start("one")
    one.wait_for("STATE RUNNING")
    one.say("close")
    one.wait_for("CLOSED")
    words = ["--bootstrap-server", server.bootstrap_servers, "--delete", "--group", counts.name]
    assert main(["streams-groups", *words, "--delete-all-internal-topics"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"Deletion of requested streams groups ('{counts.name}') was successful.",
        f"Deletion of associated internal topics of the streams groups ('{counts.name}') was successful.",
    ]
    with Admin(server.bootstrap_servers) as admin:
        left = [name for name in admin.list_topics() if name.startswith(counts.name)]
        assert left == [f"{counts.name}-in", f"{counts.name}-out"]


def test_a_groups_own_setting_adds_standby_tasks_on_other_processes(
    count_words: Callable[[str], WordCounts], server: Server
) -> None:
    counts = count_words("at_least_once")
    with Admin(server.bootstrap_servers) as admin:
        admin.alter_configs(counts.name, [ConfigChange("streams.num.standby.replicas", "1", SET)], GROUP)
    counts.send(*[FIRST] * PARTITIONS)
    counts.start("one")
    counts.start("two")
    counts.wait_for_members(2)

    def copied() -> bool:
        """Whether each member has a copy of the other's tasks with state."""
        one, two = (member.assignment for member in counts.describe().members)
        active, standby = ([held["1"] for held in both if "1" in held] for both in _roles(one, two))
        return len(active) == 2 and [sorted(part) for part in standby] == [sorted(part) for part in active[::-1]]

    wait_until(copied, within=WITHIN_S, what="standby tasks of both instances")
    counts.check_counts()


def _roles(*tasks: StreamsTasks) -> tuple[list[Mapping[str, tuple[int, ...]]], list[Mapping[str, tuple[int, ...]]]]:
    return [one.active for one in tasks], [one.standby for one in tasks]


def test_endpoints_have_the_partitions_of_their_tasks(count_words: Callable[[str], WordCounts]) -> None:
    counts = count_words("at_least_once")
    one = counts.start("one", application_server="localhost:7001")
    two = counts.start("two", application_server="localhost:7002")
    counts.wait_for_members(2)

    def known(app: StreamsApp) -> bool:
        del app.lines[:]
        app.say("endpoints")
        app.wait_for("END")
        found = {line for line in app.lines if line.startswith("ENDPOINT ")}
        # Each has two tasks of both subtopologies: of the input and of the repartition topic.
        return found == {"ENDPOINT localhost:7001 4", "ENDPOINT localhost:7002 4"}

    for app in (one, two):
        wait_until(partial(known, app), within=WITHIN_S, what="the endpoints of both instances")
