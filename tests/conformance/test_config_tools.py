"""Our commands beside Kafka's tools on the same server: the same lines."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.conftest import Server, Topic
from tests.support import kafka_tools, programs
from tests.support.batches import batch_of
from tests.support.wire import Wire, produce, produced

REMOVED = ("--delete-config", "SCRAM-SHA-256")
SMALL = "SCRAM-SHA-256=[iterations=8192,password=s]"
PROGRAM = Path(sys.executable).with_name("pybroker")

# A test starts a virtual machine for each run of Kafka's tools.
pytestmark = [pytest.mark.java]


def ours(command: str, *arguments: str) -> list[str]:
    """What our command prints."""
    ran = subprocess.run([PROGRAM, command, *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def kafkas(tool: str, *arguments: str) -> list[str]:
    """What Kafka's tool prints."""
    programs.kafka_tools()
    ran = kafka_tools.run(tool, *arguments)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


def both_fail(tool: str, *arguments: str) -> tuple[list[str], str]:
    """Standard output and standard error of our command, where it fails as Kafka's tool does, in the same words."""
    programs.kafka_tools()
    theirs = kafka_tools.run(tool, *arguments)
    ran = subprocess.run([PROGRAM, tool, *arguments], capture_output=True, text=True, check=False)
    message = ran.stderr.removeprefix(f"pybroker {tool}: ").strip()
    assert (ran.returncode, theirs.returncode) == (1, 1), ran.stderr
    assert ran.stdout.splitlines() == theirs.stdout.splitlines()
    assert message == theirs.stderr.splitlines()[0]
    return ran.stdout.splitlines(), message


def test_settings_are_changed_and_shown_as_by_kafkas_tool(server: Server, create: Callable[..., Topic]) -> None:
    topic = create(**{"retention.ms": "5"}).name
    at = ("--bootstrap-server", server.bootstrap_servers)
    changes = ("--alter", "--topic", topic, "--add-config", "cleanup.policy=[compact,delete],flush.ms=7")
    assert ours("configs", *at, *changes) == kafkas("configs", *at, *changes)
    for requested in (
        ("--describe", "--topic", topic),
        ("--describe", "--all", "--topic", topic),
        ("--describe", "--entity-type", "brokers"),
        ("--describe", "--topic", "nothing"),
    ):
        assert ours("configs", *at, *requested) == kafkas("configs", *at, *requested)
    every = ("--describe", "--entity-type", "topics")
    # Topics come in the order of a hash table there, by name here.
    assert sorted(ours("configs", *at, *every)) == sorted(kafkas("configs", *at, *every))
    back = ("--alter", "--entity-type", "topics", "--entity-name", topic, "--delete-config", "flush.ms,retention.ms")
    assert kafkas("configs", *at, *back) == [f"Completed updating config for topic {topic}."]
    (left,) = ours("configs", *at, "--describe", "--topic", topic)[1:]
    assert left.startswith("  cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:")


def test_users_of_scram_are_changed_and_shown_as_by_kafkas_tool(server: Server, topic_name: str) -> None:
    """Each tool gives and takes a password of its own user, and shows the other's."""
    at = ("--bootstrap-server", server.bootstrap_servers)
    users = {ours: f"{topic_name}-one", kafkas: f"{topic_name}-two"}
    for change in (("--add-config", "SCRAM-SHA-512=[password=s]"), ("--add-config", SMALL), REMOVED):
        printed = []
        for run, user in users.items():
            if change is REMOVED:
                shown = f"SCRAM credential configs for user-principal '{user}' are "
                requested = ("--describe", "--entity-type", "users", "--entity-name", user)
                other = kafkas if run is ours else ours
                both = "SCRAM-SHA-256=iterations=8192, SCRAM-SHA-512=iterations=4096"
                assert other("configs", *at, *requested) == [shown + both]
            printed.append(
                [line.replace(user, "USER") for line in run("configs", *at, "--alter", "--user", user, *change)]
            )
        assert printed[0] == printed[1]


def test_records_are_deleted_as_by_kafkas_tool(
    server: Server, wire: Wire, create: Callable[..., Topic], tmp_path: Path
) -> None:
    topic = create(partitions=20).name
    for partition in range(20):
        assert produced(wire.query(produce(topic, batch_of(b"a", b"b"), partition=partition))).error_code == 0
    offsets = [{"topic": topic, "partition": index, "offset": (1, -1, 3)[index % 3]} for index in range(20)]
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"partitions": offsets, "version": 1}))
    requested = ("--bootstrap-server", server.bootstrap_servers, "--offset-json-file", str(file))
    printed = ours("delete-records", *requested)
    assert len(printed) == 22
    # The tool's order of partitions is another with every run.
    assert sorted(printed) == sorted(kafkas("delete-records", *requested))


def test_topics_are_enlarged_as_by_kafkas_tool(server: Server, topic: Topic) -> None:
    at = ("--bootstrap-server", server.bootstrap_servers)
    assert ours("topics", *at, "--alter", "--topic", topic.name, "--partitions", "2") == []
    assert kafkas("topics", *at, "--alter", "--topic", topic.name, "--partitions", "4") == []
    described = ours("topics", *at, "--describe", "--topic", topic.name)
    assert len(described) == 5


def test_topics_are_refused_as_by_kafkas_tool(server: Server, topic: Topic) -> None:
    programs.kafka_tools()
    at = ("--bootstrap-server", server.bootstrap_servers)
    for requested in (
        ("--create", "--topic", topic.name),
        ("--create", "--topic", "a/b"),
        ("--create", "--topic", "wrong", "--replication-factor", "5"),
        ("--create", "--topic", "wrong", "--config", "foo=1"),
        ("--describe", "--topic", "nothing"),
        ("--alter", "--topic", topic.name, "--partitions", "1"),
    ):
        theirs = kafka_tools.run("topics", *at, *requested)
        ran = subprocess.run([PROGRAM, "topics", *at, *requested], capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout) == (theirs.returncode, ""), requested
        message, logged = ran.stderr.removeprefix("pybroker topics: ").strip(), theirs.stderr.splitlines()[0]
        assert logged.endswith(message), "what the tool finds itself has no name here"
        if "kafka.common.errors" in logged:
            assert logged.endswith(f" ERROR {message}")


@pytest.mark.parametrize(
    "requested",
    [
        ["--create"],
        ["--alter", "--topic", "TOPIC"],
        ["--describe", "--if-exists"],
        ["--alter", "--topic", "TOPIC", "--partitions", "4", "--replication-factor", "1"],
        ["--delete", "--topic", "TOPIC", "--partitions", "3"],
        ["--list", "--if-exists", "--partitions", "3"],
        ["--create", "--topic", "new", "--partitions", "2", "--replica-assignment", "1,1"],
        ["--create", "--topic", "new", "--topics-with-overrides"],
        ["--describe", "--topics-with-overrides", "--at-min-isr-partitions"],
        ["--describe", "--if-not-exists"],
        ["--create", "--topic", "new", "--exclude-internal"],
    ],
)
def test_options_of_topics_are_refused_as_by_kafkas_tool(server: Server, topic: Topic, requested: list[str]) -> None:
    words = [topic.name if word == "TOPIC" else word for word in requested]
    both_fail("topics", "--bootstrap-server", server.bootstrap_servers, *words)
    assert topic.name in ours("topics", "--bootstrap-server", server.bootstrap_servers, "--list")


@pytest.mark.parametrize(
    "requested",
    [
        ["--topic-id", "zz"],
        ["--topic-id", "zz", "--if-exists"],
        ["--topic-id", "!!!!"],
        ["--topic-id", "A" * 25],
        ["--topic-id", "AAAAAAAAAAAAAAAAAAAABg=="],
        ["--topic-id", "AAAAAAAAAAAAAAAAAAAABh", "--if-exists"],
        ["--topic-id", "A" * 22, "--topic", "nothing"],
    ],
)
def test_ids_that_are_no_topics_are_reported_as_by_kafkas_tool(server: Server, requested: list[str]) -> None:
    programs.kafka_tools()
    whole = ("topics", "--bootstrap-server", server.bootstrap_servers, "--describe", *requested)
    theirs = kafka_tools.run(*whole)
    ran = subprocess.run([PROGRAM, *whole], capture_output=True, text=True, check=False)
    assert ran.returncode == theirs.returncode
    if theirs.returncode == 0:
        assert (ran.stdout, ran.stderr) == (theirs.stdout, theirs.stderr)
        return
    # Kafka's tool gives the reason on standard output and a trace on standard error; ours gives it once, on the latter.
    reason = theirs.stdout.partition(" : ")[2]
    assert ran.stdout == ""
    assert ran.stderr.endswith(reason)
    assert len(ran.stderr.splitlines()) == 1


def test_a_topic_is_described_by_any_form_of_its_id_as_by_kafkas_tool(server: Server, topic: Topic) -> None:
    at = ("--bootstrap-server", server.bootstrap_servers, "--describe", "--topic-id")
    text = base64.urlsafe_b64encode(topic.id.bytes).decode()
    for form in (text, text.rstrip("=")):
        described = ours("topics", *at, form)
        assert len(described) == 2
        assert described == kafkas("topics", *at, form)


def test_a_topic_without_settings_is_refused_as_by_kafkas_tool(server: Server) -> None:
    programs.kafka_tools()
    changes = ("--alter", "--topic", "nothing", "--delete-config", "flush.ms")
    requested = ("--bootstrap-server", server.bootstrap_servers, *changes)
    theirs = kafka_tools.run("configs", *requested)
    ran = subprocess.run([PROGRAM, "configs", *requested], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (theirs.returncode, theirs.stdout) == (1, "")
    message = ran.stderr.removeprefix("pybroker configs: Error while executing config command: ").strip()
    assert theirs.stderr.splitlines()[1] == f"java.util.concurrent.ExecutionException: {message}"


def test_topics_are_described_in_parts_as_by_kafkas_tool(server: Server, create: Callable[..., Topic]) -> None:
    topic = create(partitions=5, **{"flush.ms": "7"})
    at = ("--bootstrap-server", server.bootstrap_servers)
    requested = ("--describe", "--topic", topic.name, "--partition-size-limit-per-response", "2")
    described = kafkas("topics", *at, *requested)
    assert len(described) == 6
    assert described[1].endswith("\tElr: \tLastKnownElr: "), "it asks by DescribeTopicPartitions"
    assert ours("topics", *at, *requested) == described
    topic_id = base64.urlsafe_b64encode(topic.id.bytes).decode().rstrip("=")
    by_id = kafkas("topics", *at, "--describe", "--topic-id", topic_id)
    assert ours("topics", *at, "--describe", "--topic-id", topic_id) == by_id


def test_leaders_are_elected_as_by_kafkas_tool(server: Server, create: Callable[..., Topic], tmp_path: Path) -> None:
    topic = create(partitions=2).name
    requested = ("--bootstrap-server", server.bootstrap_servers, "--election-type", "preferred")
    one = (*requested, "--topic", topic, "--partition", "1")
    assert ours("leader-election", *one) == kafkas("leader-election", *one)
    file = tmp_path / "partitions.json"
    file.write_text(json.dumps({"partitions": [{"topic": topic, "partition": index} for index in (0, 7)]}))
    printed, message = both_fail("leader-election", *requested, "--path-to-json-file", str(file))
    assert printed == [
        f"Valid replica already elected for partitions {topic}-0",
        (
            f"Error completing leader election (PREFERRED) for partition: {topic}-7: "
            f"org.apache.kafka.common.errors.UnknownTopicOrPartitionException: No such partition as {topic}-7"
        ),
    ]
    assert message == "1 replica(s) could not be elected"
    both_fail("leader-election", *requested)
