"""AlterReplicaLogDirs: replicas go to another log directory of their broker, for every client that asks."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pybench.peers import java
from tests.conformance.conftest import PEER, leads_all, serving
from tests.support import java_oracle, kafka_tools, programs
from tests.support.batches import batch_of, read_batches
from tests.support.conditions import wait_until
from tests.support.wire import Wire, fetch, fetched, produce, produced

UNKNOWN_TOPIC_OR_PARTITION = 3
LOG_DIR_NOT_FOUND = 57
BROKER = 4
THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"
REPLICATION_RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
PROGRAM = Path(sys.executable).with_name("pybroker")

# The directories are given by path, and those of three brokers are not the same.
pytestmark = pytest.mark.skipif(PEER == "cluster", reason="about the directories of one server")

_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Directories:
    """A server with two log directories."""

    bootstrap_servers: str
    first: str
    second: str

    def other(self, path: str) -> str:
        """The one that is not this."""
        return self.second if path == self.first else self.first


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Directories]:
    """The server that all tests of this file share."""
    first, second = tmp_path_factory.mktemp("first") / "logs", tmp_path_factory.mktemp("second") / "logs"
    with serving({"log.dirs": f"{first},{second}"}) as server:
        yield Directories(server.bootstrap_servers, str(first), str(second))


@pytest.fixture
def wire(there: Directories) -> Iterator[Wire]:
    """A connection to the server with two directories."""
    with Wire(there.bootstrap_servers) as connection:
        yield connection


@pytest.fixture
def topic(wire: Wire) -> str:
    """A topic of two partitions."""
    name = f"moved-{next(_numbers)}"
    make(wire, name)
    return name


def make(wire: Wire, name: str) -> None:
    """Make a topic of two partitions, and wait until both are served."""
    requested = {"name": name, "num_partitions": 2, "replication_factor": 1}
    assert wire.call("CreateTopics", 7, topics=[requested], timeout_ms=10_000).topics[0].error_code == 0
    wait_until(lambda: leads_all(wire, name, 2), within=60, what=f"{name} has leaders")


def query(wire: Wire, *moves: tuple[str, str, int], version: int = 2) -> dict[tuple[str, int], int]:
    """Ask for moves, each a path, topic and partition; the error codes by partition."""
    dirs = [{"path": path, "topics": [{"name": name, "partitions": [index]}]} for path, name, index in moves]
    response = wire.call("AlterReplicaLogDirs", version, dirs=dirs)
    assert response.throttle_time_ms == 0
    return {
        (topic.topic_name, part.partition_index): part.error_code
        for topic in response.results
        for part in topic.partitions
    }


def places(wire: Wire, topic: str, index: int) -> dict[str, Any]:
    """What stands of a partition in each directory."""
    requested = [{"topic": topic, "partitions": [index]}]
    found = {}
    for result in wire.call("DescribeLogDirs", 4, topics=requested).results:
        for described in result.topics:
            (found[result.log_dir],) = described.partitions
    return found


def place(wire: Wire, topic: str, index: int) -> str:
    """The directory of a partition that does not move."""
    ((path, part),) = places(wire, topic, index).items()
    assert not part.is_future_key
    return path


def lies_in(wire: Wire, topic: str, index: int, path: str) -> bool:
    """Whether a partition lies there, and nowhere else."""
    return {where: part.is_future_key for where, part in places(wire, topic, index).items()} == {path: False}


def values(wire: Wire, topic: str, index: int) -> list[bytes]:
    """The values of all records."""
    part = fetched(wire.query(fetch(topic, 0, partitions=(index,), partition_max_bytes=1 << 24)))
    assert part.error_code == 0
    return [value for batch in read_batches(part.records) for value in batch.values if value is not None]


def slow_down(wire: Wire, bytes_per_second: int | None) -> None:
    """Set the pace of all moves, None for the default."""
    (node,) = wire.call("Metadata", 12, topics=[]).brokers
    value = None if bytes_per_second is None else str(bytes_per_second)
    change = {"name": THROTTLE, "config_operation": 1 if value is None else 0, "value": value}
    resource = {"resource_type": BROKER, "resource_name": str(node.node_id), "configs": [change]}
    (outcome,) = wire.call("IncrementalAlterConfigs", 1, resources=[resource], validate_only=False).responses
    assert outcome.error_code == 0, outcome.error_message


@pytest.mark.parametrize("version", [1, 2])
def test_a_replica_moves_with_every_record_and_goes_on_there(
    wire: Wire, there: Directories, topic: str, version: int
) -> None:
    for number in range(5):
        assert produced(wire.query(produce(topic, batch_of(b"%d" % number)))).base_offset == number
    target = there.other(place(wire, topic, 0))
    stays = place(wire, topic, 1)
    assert query(wire, (target, topic, 0), version=version) == {(topic, 0): 0}
    wait_until(lambda: lies_in(wire, topic, 0, target), within=60, what="the replica lies in the other directory")
    assert lies_in(wire, topic, 1, stays)
    assert produced(wire.query(produce(topic, batch_of(b"5")))).base_offset == 5
    assert values(wire, topic, 0) == [b"%d" % number for number in range(6)]
    assert (Path(target) / f"{topic}-0").is_dir()
    assert not (Path(there.other(target)) / f"{topic}-0").exists()


@pytest.mark.parametrize("version", [1, 2])
def test_what_cannot_be_moved_is_reported_for_each_partition(
    wire: Wire, there: Directories, topic: str, version: int
) -> None:
    here = place(wire, topic, 0)
    requested = [
        ("/no/such/directory", topic, 1),
        ("relative", f"{topic}-gone", 0),
        (there.first, f"{topic}-gone", 1),
        (there.first, topic, 7),
        (here, topic, 0),
    ]
    assert query(wire, *requested, version=version) == {
        (topic, 1): LOG_DIR_NOT_FOUND,
        (f"{topic}-gone", 0): LOG_DIR_NOT_FOUND,
        (f"{topic}-gone", 1): UNKNOWN_TOPIC_OR_PARTITION,
        (topic, 7): UNKNOWN_TOPIC_OR_PARTITION,
        (topic, 0): 0,
    }
    assert query(wire, version=version) == {}
    assert lies_in(wire, topic, 0, here)


def test_of_a_partition_that_is_named_twice_the_later_directory_counts(
    wire: Wire, there: Directories, topic: str
) -> None:
    here = place(wire, topic, 0)
    assert query(wire, (there.other(here), topic, 0), (here, topic, 0)) == {(topic, 0): 0}
    assert lies_in(wire, topic, 0, here)


def test_a_topic_that_comes_later_is_put_where_it_was_asked_to_be(wire: Wire, there: Directories) -> None:
    name = f"later-{next(_numbers)}"
    wanted = {(name, 0): UNKNOWN_TOPIC_OR_PARTITION, (name, 1): UNKNOWN_TOPIC_OR_PARTITION}
    assert query(wire, (there.second, name, 0), (there.second, name, 1)) == wanted
    make(wire, name)
    assert [place(wire, name, index) for index in (0, 1)] == [there.second] * 2


def test_a_move_is_shown_as_a_future_replica_and_cancelled_by_the_present_directory(
    wire: Wire, there: Directories, topic: str
) -> None:
    for _ in range(8):
        assert produced(wire.query(produce(topic, batch_of(b"x" * (1 << 19))))).error_code == 0
    here = place(wire, topic, 0)
    target = there.other(here)
    slow_down(wire, 1 << 10)
    try:
        assert query(wire, (target, topic, 0)) == {(topic, 0): 0}
        assert query(wire, (target, topic, 0)) == {(topic, 0): 0}, "it is on its way"
        wait_until(lambda: target in places(wire, topic, 0), within=60, what="the future replica is shown")
        shown = places(wire, topic, 0)
        assert (shown[here].is_future_key, shown[target].is_future_key) == (False, True)
        assert shown[target].partition_size < shown[here].partition_size
        assert (shown[here].offset_lag, shown[target].offset_lag > 0) == (0, True)
        assert query(wire, (here, topic, 0)) == {(topic, 0): 0}
        wait_until(lambda: lies_in(wire, topic, 0, here), within=60, what="the move is cancelled")
    finally:
        slow_down(wire, None)
    assert list(Path(target).glob(f"{topic}-0.*-future")) == []
    assert len(values(wire, topic, 0)) == 8


def test_a_topic_whose_replica_moves_can_be_deleted(wire: Wire, there: Directories, topic: str) -> None:
    for _ in range(4):
        assert produced(wire.query(produce(topic, batch_of(b"x" * (1 << 19))))).error_code == 0
    slow_down(wire, 1 << 10)
    try:
        assert query(wire, (there.other(place(wire, topic, 0)), topic, 0)) == {(topic, 0): 0}
        assert wire.call("DeleteTopics", 6, topics=[{"name": topic}], timeout_ms=10_000).responses[0].error_code == 0
        wait_until(lambda: places(wire, topic, 0) == {}, within=60, what="nothing is left of the topic")
    finally:
        slow_down(wire, None)


def test_the_admin_of_kafka_python_moves_replicas(wire: Wire, there: Directories, topic: str) -> None:
    from kafka.admin import KafkaAdminClient
    from kafka.errors import LogDirNotFoundError, NoError

    target = there.other(place(wire, topic, 0))
    (node,) = wire.call("Metadata", 12, topics=[]).brokers
    admin = KafkaAdminClient(bootstrap_servers=there.bootstrap_servers)
    try:
        outcomes = admin.alter_replica_log_dirs(
            {(topic, 0, node.node_id): target, (topic, 1, node.node_id): "/no/such/directory"}
        )
    finally:
        admin.close()
    assert {replica.partition: error for replica, error in outcomes.items()} == {0: NoError, 1: LogDirNotFoundError}
    wait_until(lambda: lies_in(wire, topic, 0, target), within=60, what="the replica lies in the other directory")


def test_our_admin_moves_replicas(wire: Wire, there: Directories, topic: str) -> None:
    from pybroker.client import Admin, Replica, TopicPartition

    target = there.other(place(wire, topic, 1))
    with Admin(there.bootstrap_servers) as admin:
        (node,) = admin.describe_cluster().brokers
        moved, lost = (Replica(TopicPartition(topic, index), node.node_id) for index in (1, 7))
        outcomes = admin.alter_replica_log_dirs({moved: target, lost: target})
        codes = {replica: None if error is None else error.code for replica, error in outcomes.items()}
        assert codes == {moved: None, lost: UNKNOWN_TOPIC_OR_PARTITION}
        wait_until(lambda: lies_in(wire, topic, 1, target), within=60, what="the replica lies in the other directory")
        described = admin.describe_log_dirs([node.node_id])[node.node_id]
    assert described.keys() == {there.first, there.second}
    assert TopicPartition(topic, 1) in described[target].replicas
    assert 0 < described[target].usable_bytes <= described[target].total_bytes


@pytest.mark.java
def test_the_admin_of_java_moves_replicas(wire: Wire, there: Directories, topic: str) -> None:
    programs.kafka_tools()
    target = there.other(place(wire, topic, 0))
    (node,) = wire.call("Metadata", 12, topics=[]).brokers
    words = (there.bootstrap_servers, topic, "0", str(node.node_id), target)
    ran = java.run_java_tool(java.build_client("ReplicaMover", java_oracle.SOURCES), *words)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [target]
    wait_until(lambda: lies_in(wire, topic, 0, target), within=60, what="the replica lies in the other directory")


@pytest.mark.java
def test_our_command_prints_what_kafkas_tool_prints(wire: Wire, there: Directories, topic: str) -> None:
    programs.kafka_tools()
    at = ("--bootstrap-server", there.bootstrap_servers)
    (node,) = wire.call("Metadata", 12, topics=[]).brokers
    assert produced(wire.query(produce(topic, batch_of(b"x")))).error_code == 0
    for requested in ((), ("--topic-list", f"{topic},,no", "--broker-list", str(node.node_id))):
        kafkas = kafka_tools.run("log-dirs", *at, "--describe", *requested)
        assert kafkas.returncode == 0, kafkas.stderr
        ours = subprocess.run(
            [PROGRAM, "log-dirs", *at, "--describe", *requested], capture_output=True, text=True, check=True
        )
        assert ours.stdout == kafkas.stdout
    described = json.loads(ours.stdout.splitlines()[-1])
    shown = [part["partition"] for found in described["brokers"][0]["logDirs"] for part in found["partitions"]]
    assert sorted(shown) == [f"{topic}-0", f"{topic}-1"]
    lost = ("--describe", "--broker-list", "4711")
    kafkas = kafka_tools.run("log-dirs", *at, *lost)
    ours_lost = subprocess.run([PROGRAM, "log-dirs", *at, *lost], capture_output=True, text=True, check=False)
    assert (ours_lost.returncode, kafkas.returncode) == (1, 1)
    words = "ERROR: The given brokers do not exist from --broker-list: 4711. Current existent brokers: "
    assert words in ours_lost.stderr
    assert words in kafkas.stdout + kafkas.stderr


Reassign = Callable[..., str]


@pytest.fixture
def node(wire: Wire) -> int:
    """The only broker."""
    (broker,) = wire.call("Metadata", 12, topics=[]).brokers
    return int(broker.node_id)


@pytest.fixture(params=[pytest.param("kafka", marks=pytest.mark.java), "pybroker"])
def reassign(there: Directories, tmp_path: Path, request: pytest.FixtureRequest) -> Reassign:
    """Run Kafka's reassignment tool, or our command; what it prints. `plan` is for its file, `status` how it ends."""
    if request.param == "kafka":
        programs.kafka_tools()
        program = java.short_java_command("reassign-partitions")
    else:
        program = [str(PROGRAM), "reassign-partitions"]

    def run(*words: str, plan: dict[str, Any] | None = None, status: int = 0) -> str:
        file = tmp_path / "reassignment.json"
        if plan is not None:
            file.write_text(json.dumps({"version": 1, "partitions": [plan]}))
            words = (*words, "--reassignment-json-file", str(file))
        command = [*program, "--bootstrap-server", there.bootstrap_servers, *words]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert ran.returncode == status, ran.stdout + ran.stderr
        return ran.stdout if status == 0 else ran.stdout + ran.stderr

    return run


@contextmanager
def written_to(there: Directories, topic: str) -> Iterator[list[bytes]]:
    """Writes one record after the other to partition 0 while the context lasts; those that are acknowledged."""
    written: list[bytes] = []
    over = threading.Event()

    def write() -> None:
        with Wire(there.bootstrap_servers) as connection:
            while not over.wait(0.005):
                value = b"%d" % len(written)
                assert produced(connection.query(produce(topic, batch_of(value)))).error_code == 0
                written.append(value)

    with ThreadPoolExecutor(1) as threads:
        writer = threads.submit(write)
        try:
            yield written
        finally:
            over.set()
        writer.result(60)


def throttles(wire: Wire, node: int, topic: str) -> dict[str, str]:
    """What throttles the broker and the topic, of what somebody has set."""
    requested = [{"resource_type": BROKER, "resource_name": str(node)}, {"resource_type": 2, "resource_name": topic}]
    return {
        one.name: one.value
        for result in wire.call("DescribeConfigs", 4, resources=requested).results
        for one in result.configs
        if one.config_source in {1, 2} and (one.name == THROTTLE or "throttled" in one.name)
    }


def begun(topic: str, node: int, here: str, target: str, throttle: str = "") -> str:
    """What the tool prints of a move that it has asked for."""
    before = {"topic": topic, "partition": 0, "replicas": [node], "log_dirs": [here]}
    standing = json.dumps({"version": 1, "partitions": [before]}, separators=(",", ":"))
    warning = (
        "Warning: You must run --verify periodically, until the reassignment completes, "
        "to ensure the throttle is removed."
    )
    return (
        f"Current partition replica assignment\n\n{standing}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback\n"
        + (f"{warning}\n{throttle}" if throttle else "")
        + f"Successfully started partition reassignment for {topic}-0\n"
        f"Successfully started moving log directory to {target} for replica {topic}-0 with broker {node} \n"
    )


def status(topic: str, move: str) -> str:
    """What the tool prints of a partition that has its replicas, before the lines about the throttles."""
    return (
        f"Status of partition reassignment:\nReassignment of partition {topic}-0 is completed.\n"
        f"{move.format(topic=topic)}\n"
    )


def cleared(topic: str, node: int) -> str:
    """What the tool prints when it takes the throttles away."""
    return f"Clearing broker-level throttles on broker {node}\nClearing topic-level throttles on topic {topic}\n"


def test_a_tool_moves_a_log_that_is_written_to(
    wire: Wire, there: Directories, topic: str, node: int, reassign: Reassign
) -> None:
    for _ in range(8):
        assert produced(wire.query(produce(topic, batch_of(b"x" * (1 << 19))))).error_code == 0
    here = place(wire, topic, 0)
    target = there.other(here)
    plan = {"topic": topic, "partition": 0, "replicas": [node], "log_dirs": [target]}
    with written_to(there, topic) as written:
        printed = reassign("--execute", "--replica-alter-log-dirs-throttle", "1024", plan=plan)
        slowed = "The replica-alter-dir throttle limit was set to 1024 B/s\n"
        assert printed == begun(topic, node, here, target, slowed)
        assert throttles(wire, node, topic) == {THROTTLE: "1024"}
        printed = reassign("--verify", plan=plan)
        assert printed == status(topic, f"Reassignment of replica {topic}-0-{node} is still in progress.")
        assert throttles(wire, node, topic) == {THROTTLE: "1024"}, "it is needed still"
        assert reassign("--list") == "No partition reassignments found.\n"
        before = len(written)
        hurried = "The replica-alter-dir throttle limit was set to 1000000000 B/s\n"
        printed = reassign("--execute", "--replica-alter-log-dirs-throttle", "1000000000", plan=plan)
        assert printed == begun(topic, node, here, target, hurried)
        wait_until(lambda: lies_in(wire, topic, 0, target), within=60, what="the replica lies in the other directory")
        after = len(written)
        wait_until(lambda: len(written) > after, within=60, what="the log is written to where it lies now")
    assert before < after
    printed = reassign("--verify", plan=plan)
    completed = status(topic, f"Reassignment of replica {topic}-0-{node} completed successfully.")
    assert printed == completed + cleared(topic, node)
    assert throttles(wire, node, topic) == {}
    assert reassign("--verify", "--preserve-throttles", plan=plan) == completed
    assert values(wire, topic, 0)[8:] == written
    assert (Path(target) / f"{topic}-0").is_dir()
    assert not (Path(here) / f"{topic}-0").exists()


def test_a_tool_cancels_a_move(wire: Wire, there: Directories, topic: str, node: int, reassign: Reassign) -> None:
    for _ in range(8):
        assert produced(wire.query(produce(topic, batch_of(b"x" * (1 << 19))))).error_code == 0
    here = place(wire, topic, 0)
    target = there.other(here)
    plan = {"topic": topic, "partition": 0, "replicas": [node], "log_dirs": [target]}
    printed = reassign("--execute", "--replica-alter-log-dirs-throttle", "1024", plan=plan)
    slowed = "The replica-alter-dir throttle limit was set to 1024 B/s\n"
    assert printed == begun(topic, node, here, target, slowed)
    inactive = "None of the specified partition reassignments are active.\n"
    printed = reassign("--cancel", "--preserve-throttles", plan=plan)
    back = f"Successfully started moving log directory to {here} for replica {topic}-0 with broker {node} \n"
    assert printed == inactive + back
    wait_until(lambda: lies_in(wire, topic, 0, here), within=60, what="the move is cancelled")
    assert throttles(wire, node, topic) == {THROTTLE: "1024"}
    printed = reassign("--cancel", plan=plan)
    assert printed == f"{inactive}None of the specified partition moves are active.{cleared(topic, node)}"
    assert throttles(wire, node, topic) == {}
    stays = f"Partition {topic}-0 on broker {node} is not being moved from log dir {here} to {target}."
    assert reassign("--verify", "--preserve-throttles", plan=plan) == status(topic, stays)
    assert len(values(wire, topic, 0)) == 8


def test_a_tool_reports_a_directory_that_there_is_not(
    wire: Wire, there: Directories, topic: str, node: int, reassign: Reassign
) -> None:
    here = place(wire, topic, 0)
    lost = {"topic": topic, "partition": 0, "replicas": [node], "log_dirs": ["/no/such/directory"]}
    printed = reassign("--execute", plan=lost, status=1)
    assert f"Successfully started partition reassignment for {topic}-0\n" in printed
    assert f"Failed to alter dir for {topic}-0-{node}" in printed
    assert "LogDirNotFoundException" in printed
    assert lies_in(wire, topic, 0, here)


@pytest.mark.parametrize("reassign", [pytest.param("kafka", marks=pytest.mark.java)], indirect=True)
def test_replication_is_throttled_and_no_longer_by_kafkas_tool(
    wire: Wire, there: Directories, topic: str, node: int, reassign: Reassign
) -> None:
    plan = {"topic": topic, "partition": 0, "replicas": [node]}
    printed = reassign("--execute", "--throttle", "2048", plan=plan)
    assert "The inter-broker throttle limit was set to 2048 B/s\n" in printed
    # To the tool the broker's replica, which stays its replica, is one that others may be copied from.
    replicas = {"leader.replication.throttled.replicas": f"0:{node}", "follower.replication.throttled.replicas": ""}
    assert throttles(wire, node, topic) == {**dict.fromkeys(REPLICATION_RATES, "2048"), **replicas}
    assert reassign("--verify", plan=plan) == status(topic, "") + cleared(topic, node)
    assert throttles(wire, node, topic) == {}
