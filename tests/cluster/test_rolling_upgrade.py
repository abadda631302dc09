"""A cluster of the first version that has clusters is upgraded to this one, one node after the other, under load."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import confluent_kafka
import pytest

from pybroker.client import Admin, NewTopic, TopicPartition
from pybroker.client.administration.topics import LATEST
from pybroker.client.errors import BrokerError, ClientError
from pybroker.config.endpoint import Endpoint
from pybroker.local_cluster.layout import (
    BROKER_LISTENER,
    CONTROLLER_LISTENER,
    NodePorts,
    build_layout,
    build_properties,
    lay_out,
)
from pybroker.metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION, METADATA_VERSION, SUPPORTED_FEATURES
from pybroker.testing.ports import ReservedPorts
from tests.support.conditions import wait_until
from tests.support.earlier_version import earlier_program
from tests.support.numbered_load import PADDING, PARTITIONS, Load, read_all
from tests.support.processes import PROGRAM, BrokerProcess

pytestmark = pytest.mark.process

TOPIC, GROUP = "orders", "readers"
_NODES = 3
_SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
_ENOUGH = 2000
"""Records acknowledged before the first node is stopped, between two, and after the last."""
_WITHIN_S = 60.0


class Nodes:
    """Three combined nodes, each run by the program that it was started with last."""

    def __init__(self, directory: Path, program: Path, ports: list[NodePorts]) -> None:
        self._layout = {node.node_id: node for node in build_layout(directory, ports)}
        lay_out(list(self._layout.values()), _SETTINGS)
        self._running = {number: self._process(number, program) for number in self._layout}

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(node.address for node in self._layout.values())

    def start(self) -> None:
        """Start all together: none is ready before most are there."""
        with ThreadPoolExecutor(len(self._running)) as starting:
            list(starting.map(BrokerProcess.start, self._running.values()))

    def upgrade(self, number: int) -> None:
        """Stop a node cleanly and start it with this version."""
        assert self._running[number].terminate() == 0
        self._running[number] = self._process(number, PROGRAM)
        self._running[number].start()

    def extensions(self) -> set[Path]:
        """The compiled extensions that the nodes run."""
        maps = [Path(f"/proc/{node.pid}/maps").read_text() for node in self._running.values()]
        return {Path(path) for text in maps for path in re.findall(r"\S+/_native\.abi3\.so$", text, re.MULTILINE)}

    def end(self) -> None:
        for node in self._running.values():
            if node.is_running():
                node.kill()

    def _process(self, number: int, program: Path) -> BrokerProcess:
        node = self._layout[number]
        properties = build_properties(list(self._layout.values()), node, _SETTINGS)
        return BrokerProcess(node.data, properties, port=node.ports.broker, program=program)


class Reader(threading.Thread):
    """A member of a group that commits what it has read before it reads on; every error is kept."""

    def __init__(self, servers: str) -> None:
        super().__init__()
        self.numbers: dict[int, list[int]] = {partition: [] for partition in range(PARTITIONS)}
        self.errors: list[str] = []
        self._stopped = threading.Event()
        settings = {"bootstrap.servers": servers, "group.id": GROUP, "auto.offset.reset": "earliest", "log_level": 0}
        self._consumer = confluent_kafka.Consumer({**settings, "enable.auto.commit": False})
        self._consumer.subscribe([TOPIC])
        self.start()

    def run(self) -> None:
        while not self._stopped.is_set():
            read = self._consumer.consume(1000, 0.1)
            self.errors += [str(message.error()) for message in read if message.error() is not None]
            for message in read:
                if message.error() is None:
                    number = int((message.value() or b"").removesuffix(PADDING))
                    self.numbers[message.partition() or 0].append(number)
            if read:
                try:
                    self._consumer.commit(asynchronous=False)
                except confluent_kafka.KafkaException as error:
                    self.errors.append(f"commit: {error}")
        self._consumer.close()

    def positions(self) -> dict[int, int]:
        """How many records of each partition were read."""
        return {partition: len(read) for partition, read in self.numbers.items()}

    def finish(self) -> None:
        self._stopped.set()
        self.join(_WITHIN_S)
        assert not self.is_alive()


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nodes]:
    """A running cluster of the earlier version."""
    program = earlier_program()
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with ExitStack() as stack:
        ports = []
        for _ in range(_NODES):
            reserved = ReservedPorts()
            stack.callback(reserved.release)
            names = (BROKER_LISTENER, CONTROLLER_LISTENER)
            broker, controller = reserved.reserve(Endpoint(name, "127.0.0.1", 0) for name in names)
            ports.append(NodePorts(broker.port, controller.port))
        made = Nodes(tmp_path, program, ports)
        stack.callback(made.end)
        made.start()
        assert [path for path in made.extensions() if not path.is_relative_to(program.parents[1])] == []
        yield made


def test_clients_see_nothing_of_a_rolling_upgrade(nodes: Nodes) -> None:
    servers = nodes.bootstrap_servers
    with Admin(servers) as admin, ExitStack() as clients:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, _NODES)])
        wait_until(lambda: in_sync(admin), within=_WITHIN_S, what="all replicas are in sync")
        load = Load(servers, TOPIC, idempotent=True)
        clients.callback(load.finish)
        reader = Reader(servers)
        clients.callback(reader.finish)
        last = admin.describe_cluster().controller_id
        for number in [*(one for one in range(1, _NODES + 1) if one != last), last]:
            wait_for_more(load, reader)
            nodes.upgrade(number)
            wait_until(lambda: in_sync(admin), within=_WITHIN_S, what=f"all are in sync after the start of {number}")
        wait_for_more(load, reader)
        load.finish()
        ends = {TopicPartition(TOPIC, index): LATEST for index in range(PARTITIONS)}
        found = {where.partition: one.offset for where, one in admin.list_offsets(ends).items()}
        wait_until(
            lambda: {part: len(read) for part, read in reader.numbers.items()} == found,
            within=_WITHIN_S,
            what=lambda: (
                f"the group has read to {found}: { {part: len(read) for part, read in reader.numbers.items()} }"
            ),
        )
        reader.finish()
        committed = {where.partition: one.offset for where, one in admin.list_group_offsets(GROUP).items()}

    assert (load.failures, reader.errors) == ([], [])
    kept: dict[int, list[int]] = {partition: [] for partition in range(PARTITIONS)}
    for partition, offset, number in read_all(servers, TOPIC):
        kept[partition].append(number)
        assert load.acknowledged.pop((partition, offset)) == number
    assert load.acknowledged == {}, "acknowledged, and not there"
    # Each once and in the order of sending, in the log and for the group.
    assert kept == {partition: list(range(partition, load.sent, PARTITIONS)) for partition in range(PARTITIONS)}
    assert (reader.numbers, committed) == (kept, found)


def test_features_are_finalized_when_all_nodes_run_the_new_version(nodes: Nodes) -> None:
    servers = nodes.bootstrap_servers
    before = levels(servers)
    for number in (1, 2, 3):
        nodes.upgrade(number)
        assert levels(servers) == before, "a level rises when somebody asks for it, not by itself"
    query = ["features", "--bootstrap-server", servers]
    newest = SUPPORTED_FEATURES[METADATA_VERSION][1]
    for wanted in (f"{METADATA_VERSION}={newest}", f"{ELIGIBLE_LEADER_REPLICAS_VERSION}=1"):
        words = [str(PROGRAM), *query, "upgrade", "--feature", wanted]
        raised = subprocess.run(words, capture_output=True, text=True, check=False)
        assert raised.returncode == 0, raised.stdout + raised.stderr
    after = levels(servers)
    assert (after[METADATA_VERSION], after[ELIGIBLE_LEADER_REPLICAS_VERSION]) == (newest, 1)


def levels(servers: str) -> dict[str, int]:
    """The finalized level of each feature, once the cluster answers; one that only newer nodes know is at 0."""

    def look() -> dict[str, int]:
        try:
            with Admin(servers) as admin:
                found = {name: feature.level for name, feature in admin.describe_features().items()}
                return {name: level for name, level in found.items() if level}
        except (BrokerError, ClientError):
            return {}

    return wait_until(look, within=_WITHIN_S, what="the cluster says which features it has")


def in_sync(admin: Admin) -> bool:
    """Whether every replica of every topic, `__consumer_offsets` among them, is in sync."""
    try:
        topics = admin.describe_topics(admin.list_topics(internal=True))
    except (BrokerError, ClientError):
        return False
    parts = [part for topic in topics for part in topic.partitions]
    return bool(parts) and all(part.leader >= 0 and set(part.isr) == set(part.replicas) for part in parts)


def wait_for_more(load: Load, reader: Reader) -> None:
    """Wait until more has been acknowledged, and more has been read."""
    sent, read = len(load.acknowledged) + _ENOUGH, total(reader) + _ENOUGH
    wait_until(
        lambda: len(load.acknowledged) >= sent and total(reader) >= read,
        within=_WITHIN_S,
        what=lambda: f"{sent} acknowledged and {read} read: {len(load.acknowledged)}, {total(reader)}; {reader.errors}",
    )


def total(reader: Reader) -> int:
    return sum(map(len, reader.numbers.values()))
