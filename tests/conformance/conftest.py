"""One server for all conformance tests, and separate topics for each test.

`PYBROKER_CONFORMANCE_PEER=kafka` runs the same tests against Apache Kafka, to verify the tests themselves.
`PYBROKER_CONFORMANCE_PEER=cluster` runs them against a pybroker cluster of three. Modules marked `one_and_three` run
against one broker and against three in every run.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pybroker.client import Admin, NewTopic
from tests.conformance.classic_members import OK, UNKNOWN_MEMBER_ID, Member
from tests.conformance.transactions import TRANSACTIONAL_ID_NOT_FOUND, Transactional
from tests.support import programs
from tests.support.conditions import wait_until
from tests.support.kafka_python import close_refused_sockets
from tests.support.wire import Wire, fetch, request

PEER = os.environ.get("PYBROKER_CONFORMANCE_PEER", "broker")
AGAINST_KAFKA = PEER == "kafka"

# Many tests write records with timestamps of 1970 or 2023, which the retention task would delete. It does not run in
# this session. Tests of retention have a broker of their own.
# Members of KIP-848 that wait for each other's heartbeats would wait five seconds each time.
_SETTINGS = {
    "log.initial.task.delay.ms": str(24 * 60 * 60 * 1000),
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
}

_numbers = itertools.count(1)

close_refused_sockets()


@dataclass(frozen=True, slots=True)
class Server:
    """The address of the server under test, and its log directories."""

    bootstrap_servers: str
    """One address, also for a cluster: clients discover the other brokers through Metadata."""

    log_directory: Path
    brokers: tuple[int, ...] = (1,)
    """Ids of all brokers. The first one listens at `bootstrap_servers`."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic created for one test."""

    name: str
    id: Any


@contextmanager
def serving(overrides: Mapping[str, str] | None = None, peer: str = PEER) -> Iterator[Server]:
    """Yield a separate server with these settings, for claims about settings that are read at startup."""
    if peer == "kafka":
        from pybench.peers.kafka import Kafka

        programs.kafka_tools()
        # As in the embedded broker: the first member of a group does not wait for others.
        settings = {"group.initial.rebalance.delay.ms": "0", **(overrides or {})}
        with Kafka(overrides=settings, ready_timeout_s=300) as kafka, Wire(kafka.bootstrap_servers) as wire:
            first = request("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=60_000)
            wait_until(lambda: wire.query(first).error_code == 0, within=60, what="producer ids are given")
            yield Server(kafka.bootstrap_servers, kafka.log_directory)
    elif peer == "cluster":
        from pybroker.testing import Cluster

        with Cluster(3, properties=overrides) as cluster:
            first = cluster.brokers[0]
            yield Server(cluster.address(first), cluster.directory / f"broker-{first}" / "data", cluster.brokers)
    else:
        from pybroker.testing import Broker

        with Broker(properties=overrides) as broker:
            yield Server(broker.bootstrap_servers, Path(broker.directory))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of marked modules against one broker and against three brokers."""
    if PEER != "broker" or "server" not in metafunc.fixturenames:
        return
    if metafunc.definition.get_closest_marker("one_and_three") is not None:
        metafunc.parametrize("server", ["broker", "cluster"], indirect=True, ids=["one", "three"], scope="session")


@pytest.fixture(scope="session")
def servers() -> Iterator[Callable[[str], Server]]:
    """The servers of the session by their kind, each started at its first use."""
    started: dict[str, Server] = {}
    with ExitStack() as running:

        def find(peer: str) -> Server:
            if peer not in started:
                started[peer] = running.enter_context(serving(_SETTINGS, peer))
            return started[peer]

        yield find


@pytest.fixture(scope="session")
def server(servers: Callable[[str], Server], request: pytest.FixtureRequest) -> Server:
    """The server under test of the session."""
    return servers(getattr(request, "param", PEER))


def serves(server: Server, api_key: int) -> bool:
    """Return whether the server supports an API."""
    with Wire(server.bootstrap_servers) as connection:
        return any(api.api_key == api_key for api in connection.query(request("ApiVersions", 0)).api_keys)


@pytest.fixture
def wire(server: Server) -> Iterator[Wire]:
    """A connection that sends raw frames."""
    with Wire(server.bootstrap_servers) as connection:
        yield connection


@pytest.fixture
def topic_name() -> str:
    """A name that no other test uses."""
    return f"topic-{next(_numbers)}"


@pytest.fixture
def create(wire: Wire, server: Server, topic_name: str) -> Callable[..., Topic]:
    """A factory that creates a unique topic: `create(partitions=3, **{"cleanup.policy": "compact"})`.

    In a cluster every broker has a replica, and the broker that `wire` is connected to is the leader.
    """

    def create_topic(name: str = topic_name, *, partitions: int = 1, **configs: str) -> Topic:
        assigned = [{"partition_index": index, "broker_ids": list(server.brokers)} for index in range(partitions)]
        single = len(server.brokers) == 1
        made = wire.call(
            "CreateTopics",
            7,
            topics=[
                {
                    "name": name,
                    "num_partitions": partitions if single else -1,
                    "replication_factor": 1 if single else -1,
                    "assignments": [] if single else assigned,
                    "configs": [{"name": key, "value": value} for key, value in configs.items()],
                }
            ],
            timeout_ms=10_000,
        ).topics[0]
        assert made.error_code == 0, made
        if AGAINST_KAFKA or not single:  # brokers learn of a topic after the response to CreateTopics
            wait_until(lambda: leads_all(wire, name, partitions), within=60, what=f"{name} has leaders")
        return Topic(name, made.topic_id)

    return create_topic


def leads_all(wire: Wire, name: str, partitions: int) -> bool:
    """Return whether the broker leads every partition of a topic."""
    response = wire.query(fetch(name, partitions=range(partitions)))
    return {part.error_code for part in response.responses[0].partitions} == {0}


@pytest.fixture
def make_topic(server: Server, topic_name: str) -> Callable[[int], str]:
    """A factory that creates a topic whose partitions all have leaders. `make_topic(3)` returns its name.

    In a cluster it has the default number of replicas, placed by the controller.
    """

    def make(partitions: int) -> str:
        with Admin(server.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(topic_name, partitions, -1)])
            admin.wait_for_leaders(topic_name)
        return topic_name

    return make


@pytest.fixture
def topic(create: Callable[..., Topic]) -> Topic:
    """A topic of one partition with default configuration."""
    return create()


@pytest.fixture
def group(wire: Wire, server: Server) -> str:
    """A unique group id, whose coordinator is available on the broker that `wire` is connected to."""
    return coordinated(wire, server)


@pytest.fixture
def nobody(wire: Wire, server: Server) -> str:
    """As `group`, for a group without members."""
    return coordinated(wire, server)


def coordinated(wire: Wire, server: Server) -> str:
    """Return a new group id, whose coordinator is available on the broker that `wire` is connected to."""
    names = [f"group-{next(_numbers)}" for _ in range(1 if len(server.brokers) == 1 else 40)]
    name = names[0]

    def found() -> bool:
        nonlocal name
        responses = wire.call("FindCoordinator", 4, key_type=0, coordinator_keys=names).coordinators
        here = [
            response.key
            for response in responses
            if response.error_code == OK and response.node_id == server.brokers[0]
        ]
        if not here:
            return False
        name = here[0]
        return bool(
            wire.call("Heartbeat", 0, group_id=name, generation_id=0, member_id="x").error_code == UNKNOWN_MEMBER_ID
        )

    wait_until(found, within=60, what="the coordinator is there")
    return name


@pytest.fixture
def join(server: Server, group: str) -> Iterator[Callable[..., Member]]:
    """A factory of members of the test's group: `join(instance="i")`."""
    made: list[Member] = []

    def new_member(**settings: Any) -> Member:
        made.append(Member(server, group, **settings))
        return made[-1]

    yield new_member
    for member in made:
        member.wire.socket.close()


@pytest.fixture
def producer(wire: Wire, server: Server) -> Callable[[], Transactional]:
    """A factory of transactional producers with unique ids. `wire` is connected to their coordinator."""

    def new_producer() -> Transactional:
        return transactional(wire, server)

    return new_producer


def transactional(wire: Wire, server: Server) -> Transactional:
    """A transactional producer with a unique id, without a producer id yet."""
    names = [f"producer-{next(_numbers)}" for _ in range(1 if len(server.brokers) == 1 else 40)]
    found = ""

    def is_there() -> bool:
        nonlocal found
        responses = wire.call("FindCoordinator", 4, key_type=1, coordinator_keys=names).coordinators
        here = [
            response.key
            for response in responses
            if response.error_code == OK and response.node_id == server.brokers[0]
        ]
        if not here:
            return False
        found = here[0]
        (described,) = wire.call("DescribeTransactions", 0, transactional_ids=[found]).transaction_states
        return bool(described.error_code == TRANSACTIONAL_ID_NOT_FOUND)

    wait_until(is_there, within=60, what="the transaction coordinator is there")
    return Transactional(wire, found)
