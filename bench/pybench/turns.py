"""The rounds of one scenario, interleaved A B A B: each contestant, and plain write(), once a round.

Owns topics and the measurement of a broker's cost during each load. A round with too much stolen CPU time is repeated.
A topic is deleted after its round, so that no round writes while dirty pages of another remain. Scenarios that read
fill their topic once.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

import msgspec

from pybench import streams_loads
from pybench.cluster_loads import FAULTS, OWN_CLUSTER
from pybench.loads import Task, plain_write, run_load
from pybench.metadata_scale import measure_metadata_scale
from pybench.offsets_load import measure_offsets_load
from pybench.peers.cluster import ClusterPeer
from pybench.process import cpu_time, resident_bytes
from pybench.restarts import Restarts
from pybench.scenario import PLAIN_WRITE, STREAMS, Contestant, Scenario
from pybench.spark_loads import TOGETHER, fill_partitions, measure_rows
from pybench.startup import measure_start
from pybench.stolen import Again, Stolen, stolen_s, stolen_since
from pybench.storm_load import measure_fairness, measure_storm
from pybench.topic_loads import measure_creations, measure_metadata
from pybench.transactional_ids_load import measure_ids_load
from pybroker.client import LATEST, Admin, NewTopic, TopicPartition

_REMOVAL_TIMEOUT_S = 90.0
_numbers = itertools.count(1)
WHOLE: dict[str, Callable[[str, int, Path], tuple[str, dict[str, float]]]] = {
    "start": lambda broker, _records, _work: measure_start(broker),
    "group-load": lambda broker, offsets, _work: measure_offsets_load(broker, offsets),
    "transactional-ids-load": lambda broker, ids, _work: measure_ids_load(broker, ids),
    "metadata-scale": lambda _broker, partitions, _work: measure_metadata_scale(partitions),
    "metadata-scale-tenth": lambda _broker, partitions, _work: measure_metadata_scale(partitions // 10),
    "metadata-scale-hundredth": lambda _broker, partitions, _work: measure_metadata_scale(partitions // 100),
    "topics-create": measure_creations,
    "topics-metadata": measure_metadata,
    "storm": measure_storm,
    "fairness": measure_fairness,
    **OWN_CLUSTER,
}
"""Loads that start their own broker."""
RESTART = "restart"
"""The load that starts a broker with data from before the first round."""
OWN_BROKER = frozenset({*WHOLE, RESTART})
_WITHOUT_TOPIC = frozenset({"c-connections", "c-handshakes", "c-logins"})
SINK = "sink"
"""The server that only receives and writes to a file. It has no topics."""


class Node(Protocol):
    """A running broker or cluster."""

    @property
    def bootstrap_servers(self) -> str:
        """`host:port`."""

    @property
    def pids(self) -> tuple[int, ...]:
        """The process ids of all nodes."""

    @property
    def log_directories(self) -> tuple[Path, ...]:
        """The log directories, one for each process."""


@runtime_checkable
class SecuredNode(Protocol):
    """A node with a separate listener for loads."""

    @property
    def load_servers(self) -> str:
        """`host:port`."""

    @property
    def load_properties(self) -> Mapping[str, str]:
        """The librdkafka properties for this listener."""


@runtime_checkable
class Startable(Protocol):
    """A node that can be stopped and started again."""

    def start(self) -> object:
        """Start the stopped node with its data."""

    def stop(self) -> None:
        """Stop the processes and keep the directories."""


def run_scenario(
    scenario: Scenario,
    nodes: Mapping[str, Node],
    work: Path,
    *,
    rounds: int,
    warm_up: int,
    records: int,
    log: Callable[[str], None],
) -> dict[str, Any]:
    """Run every round. Returns the command, the counted rounds and the number of repeated rounds by contestant."""
    if all(c.load.startswith(TOGETHER) for c in scenario.contestants):
        return measure_rows(scenario, rounds=rounds, warm_up=warm_up, records=records)
    if scenario.alone:
        # One broker after the other, so that the figures exclude the cost of idle brokers.
        seen = dict[str, dict[str, Any]]()
        for contestant in scenario.contestants:
            with _others_stopped(contestant.broker, nodes):
                one = msgspec.structs.replace(scenario, contestants=(contestant,), alone=False)
                seen |= run_scenario(one, nodes, work, rounds=rounds, warm_up=warm_up, records=records, log=log)
        taken_again = sum(entry["again"] for entry in seen.values())
        return {name: {**entry, "again": taken_again} for name, entry in seen.items()}
    restarts = Restarts(scenario.properties, records)
    topics = {c.name: _fill(scenario, c, nodes, records) for c in scenario.contestants} if scenario.fill else {}
    try:
        seen = {}
        again = Again(rounds)
        number = -warm_up
        while number < rounds:
            turns, lost = _round(scenario, nodes, work, records, topics, restarts)
            for name, (_, measured) in turns.items():
                log(f"{scenario.id} round {number + 1}/{rounds} {name}: {measured['seconds']:.2f} s")
            if number >= 0 and again.wants(lost):
                log(f"{scenario.id}: the host took {max(one.share for one in lost):.1%} of the cores: once more")
                continue
            for name, (command, measured) in turns.items():
                entry = seen.setdefault(name, {"command": command, "rounds": []})
                if number >= 0:
                    entry["rounds"].append(measured)
            number += 1
        for entry in seen.values():
            entry["again"] = again.taken
        return seen
    finally:
        restarts.close()
        for contestant in scenario.contestants:
            if contestant.name in topics:
                if scenario.suite == STREAMS:
                    streams_loads.delete_topics(nodes[contestant.broker].bootstrap_servers, topics[contestant.name])
                _delete(nodes[contestant.broker], topics[contestant.name])


def _round(
    scenario: Scenario,
    nodes: Mapping[str, Node],
    work: Path,
    records: int,
    topics: Mapping[str, str],
    restarts: Restarts,
) -> tuple[dict[str, tuple[str, dict[str, float]]], list[Stolen]]:
    """Run each contestant once, and plain write() if the row has it. Returns the figures and the stolen times."""
    turns: dict[str, tuple[str, dict[str, float]]] = {}
    lost: list[Stolen] = []
    for contestant in scenario.contestants:
        before, begun = stolen_s(), time.monotonic()
        if contestant.load == RESTART:
            command, measured = restarts.turn(contestant.broker)
        else:
            command, measured = _turn(scenario, contestant, nodes, work, records, topics.get(contestant.name))
        lost.append(stolen_since(before, time.monotonic() - begun))
        turns[contestant.name] = command, {**measured, "stolen_share": lost[-1].share}
    if scenario.plain_write:
        directory = work if len(nodes) == 0 else next(iter(nodes.values())).log_directories[0]
        outcome = plain_write(directory, records, scenario.size)
        turns[PLAIN_WRITE] = outcome.command, outcome.figures
    return turns, lost


@contextlib.contextmanager
def _others_stopped(name: str, nodes: Mapping[str, Node]) -> Iterator[None]:
    others = [node for other, node in nodes.items() if other != name and isinstance(node, Startable)]
    for node in others:
        node.stop()
    try:
        yield
    finally:
        for node in others:
            node.start()


def _turn(
    scenario: Scenario, contestant: Contestant, nodes: Mapping[str, Node], work: Path, records: int, topic: str | None
) -> tuple[str, dict[str, float]]:
    if contestant.load in WHOLE:
        return WHOLE[contestant.load](contestant.broker, records, work)
    if contestant.broker == "none":
        outcome = run_load(contestant.load, Task("", str(work), records, scenario.size, scenario.properties))
        return outcome.command, outcome.figures
    node = nodes[contestant.broker]
    if contestant.load in FAULTS:
        return FAULTS[contestant.load](cast(ClusterPeer, node), records, scenario.properties)
    needs_topic = contestant.load not in _WITHOUT_TOPIC and contestant.broker != SINK
    own_topic = topic or (_create(node, int(scenario.properties.get("partitions", 1))) if needs_topic else SINK)
    try:
        before = [cpu_time(pid) for pid in node.pids]
        outcome = run_load(contestant.load, _task(node, own_topic, records, scenario.size, scenario.properties))
        used = [cpu_time(pid).since(then) for pid, then in zip(node.pids, before, strict=True)]
    finally:
        if topic is None and needs_topic:
            _delete(node, own_topic)
    cost = {
        "broker_user_s": sum(one.user_s for one in used),
        "broker_system_s": sum(one.system_s for one in used),
        "broker_rss_bytes": float(max(resident_bytes(pid) for pid in node.pids)),
    }
    return outcome.command, {**outcome.figures, **cost}


def _fill(scenario: Scenario, contestant: Contestant, nodes: Mapping[str, Node], records: int) -> str:
    node, partitions = nodes[contestant.broker], int(scenario.properties.get("partitions", 1))
    topic = _create(node, partitions)
    if scenario.suite == STREAMS:
        streams_loads.fill(node.bootstrap_servers, topic, records, scenario.size, scenario.properties)
        return topic
    if "each" in scenario.properties:
        run_load("c-transactions", _task(node, topic, records, scenario.size, scenario.properties))
        return topic
    if partitions > 1:
        fill_partitions(node.bootstrap_servers, topic, partitions, records, scenario.size)
        return topic
    # Send only full batches, so that every contestant's topic has the same batches, independent of its speed.
    run_load("c-produce", Task(node.bootstrap_servers, topic, records, scenario.size, {"linger.ms": "1000"}))
    return topic


def _task(node: Node, topic: str, records: int, size: int, properties: Mapping[str, Any]) -> Task:
    if isinstance(node, SecuredNode):
        return Task(node.load_servers, topic, records, size, {**properties, **node.load_properties})
    return Task(node.bootstrap_servers, topic, records, size, properties)


def _create(node: Node, partitions: int = 1) -> str:
    name = f"bench-{next(_numbers)}"
    with Admin(node.bootstrap_servers) as admin:
        # -1: the broker's default.replication.factor.
        admin.create_topics([NewTopic(name, partitions, -1)])
        admin.wait_for_leaders(name)
        # Kafka reports leaders before they serve requests. Wait for them, since some loads do not retry.
        admin.list_offsets({TopicPartition(name, index): LATEST for index in range(partitions)})
    return name


def _delete(node: Node, topic: str) -> None:
    """Delete a topic and wait until its files are deleted."""
    with Admin(node.bootstrap_servers) as admin:
        admin.delete_topics([topic])
    deadline = time.monotonic() + _REMOVAL_TIMEOUT_S
    while any(any(one.glob(f"{topic}-*")) for one in node.log_directories) and time.monotonic() < deadline:
        time.sleep(0.05)
