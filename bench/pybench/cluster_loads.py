"""Loads of a cluster of three nodes: a node fails, hangs or restarts; and the cost of an idle cluster.

The loads of `FAULTS` run against an existing cluster and leave it intact. Those of `OWN_CLUSTER` start their own. Owns
the order of a round: the load runs, the fault occurs, the load continues, all replicas are in sync again.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pybench.checkout import build_directory
from pybench.loads import plain_write
from pybench.peers.cluster import NODES, ClusterPeer
from pybench.peers.errors import PeerError
from pybench.peers.kafka_cluster import KafkaCluster
from pybench.peers.pybroker_cluster import PybrokerCluster
from pybench.process import cpu_time, resident_bytes
from pybroker.client import LATEST, Admin, ClientError, NewTopic, Producer, TopicPartition
from pybroker.testing import Cluster

_HALF_S = 0.5
_PAUSE_S = 0.01
_PATIENCE_S = 120.0
_BEFORE_S = 2.0
"""Seconds of load before a fault, and after the first acknowledgement that follows the fault."""
_IDLE_BEFORE_S, _IDLE_S = 10.0, 20.0
_IDLE_PARTITIONS = 1_000
_numbers = itertools.count(1)
Figures = tuple[str, dict[str, float]]


class ClusterLoadError(PeerError):
    """A cluster did not reach a state that a round waits for in time."""


def measure_leader_kill(peer: ClusterPeer, records: int, properties: Mapping[str, Any]) -> Figures:
    """Kill the partition's leader (SIGKILL). Measures the longest time without an acknowledgement."""
    return _one_fault(peer, records, properties, peer.kill_node, peer.start_node)


def measure_leader_pause(peer: ClusterPeer, records: int, properties: Mapping[str, Any]) -> Figures:
    """Pause the partition's leader (SIGSTOP). Measures the longest time without an acknowledgement."""
    return _one_fault(peer, records, properties, peer.pause_node, peer.resume_node)


def measure_rolling_restart(peer: ClusterPeer, records: int, properties: Mapping[str, Any]) -> Figures:
    """Restart one node after the other (SIGTERM). Waits until all replicas are in sync before the next node."""
    with (
        Admin(peer.bootstrap_servers) as admin,
        _topic(admin) as topic,
        _Steady(peer, topic, records, properties) as steady,
    ):
        steady.await_records(admin, _BEFORE_S)
        for node_id in range(1, NODES + 1):
            peer.stop_node(node_id)
            peer.start_node(node_id)
            _await_in_sync(admin, topic, NODES)
        steady.await_records(admin, _BEFORE_S)
        return steady.end()


def measure_controller_kill(peer: ClusterPeer, _records: int, _properties: Mapping[str, Any]) -> Figures:
    """Kill the active controller (SIGKILL). Measures the time until a CreateTopics succeeds."""
    with Admin(peer.bootstrap_servers) as admin:
        victim = admin.describe_quorum().leader_id
    servers = peer.bootstrap_servers.split(",")
    with Admin(",".join(one for at, one in enumerate(servers, 1) if at != victim)) as admin, _topic(admin) as topic:
        _await_in_sync(admin, topic, NODES)
        begun = time.monotonic()
        peer.kill_node(victim)
        name = f"created-{next(_numbers)}"
        while True:
            try:
                admin.create_topics([NewTopic(name, 1, NODES - 1)])
                break
            except ClientError:
                if time.monotonic() - begun > _PATIENCE_S:
                    raise
        elapsed = time.monotonic() - begun
        peer.start_node(victim)
        _await_in_sync(admin, topic, NODES)
        admin.delete_topics([name])
    return "CreateTopics after kill -9", {"seconds": elapsed, "records": 1.0, "answers_again_s": elapsed}


def measure_catch_up(peer: ClusterPeer, records: int, properties: Mapping[str, Any]) -> Figures:
    """Add a third replica of a partition on an empty node. Measures the time until it is in sync."""
    size = int(properties["record_bytes"])
    with Admin(peer.bootstrap_servers) as admin:
        name = f"catch-up-{next(_numbers)}"
        admin.create_topics([NewTopic(name, assignments={0: [1, 2]})])
        admin.wait_for_leaders(name)
        try:
            command = [str(_program()), "produce", "-b", peer.bootstrap_servers, "-t", name]
            subprocess.run([*command, "-n", str(records), "-s", str(size)], check=True, stdout=subprocess.DEVNULL)
            _await_in_sync(admin, name, 2)
            # Dirty pages would slow down further writes, and memory of a virtual machine is slow at its first use.
            os.sync()
            plain_write(peer.log_directories[0].parent, records, size)
            begun = time.monotonic()
            admin.alter_partition_reassignments({TopicPartition(name, 0): [1, 2, 3]})
            _await_in_sync(admin, name, NODES)
            elapsed = time.monotonic() - begun
        finally:
            admin.delete_topics([name])
    moved = float(records * size)
    return "kafka-reassign-partitions", {
        "seconds": elapsed,
        "records": float(records),
        "bytes": moved,
        "bytes_per_second": moved / elapsed,
    }


def measure_cluster_start(broker: str, _records: int, _work: Path) -> Figures:
    """Start three nodes on formatted storage. Measures the time to an acknowledged record on three replicas."""
    with tempfile.TemporaryDirectory(prefix="pybench-cluster-") as folder:
        with _own_cluster(broker, Path(folder)) as peer, Admin(peer.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("first", 1, NODES)])
            admin.wait_for_leaders("first")
            _await_in_sync(admin, "first", NODES)
            for node_id in range(1, NODES + 1):
                peer.kill_node(node_id)
        begun = time.monotonic()
        with peer, Producer(peer.bootstrap_servers, {"acks": "all", "retry.backoff.ms": "5"}) as producer:
            producer.send("first", b"record").result(_PATIENCE_S)
            elapsed = time.monotonic() - begun
    return "three nodes", {"seconds": elapsed, "records": 1.0, "acknowledged_s": elapsed}


def measure_testing_cluster(_broker: str, _records: int, _work: Path) -> Figures:
    """Start `pybroker.testing.Cluster(3)` on an empty directory. Measures the time until it is ready."""
    cluster = Cluster(NODES)
    begun = time.monotonic()
    with cluster:
        ready = time.monotonic() - begun
    return f"pybroker.testing.Cluster({NODES})", {"seconds": ready, "records": 1.0, "ready_s": ready}


def measure_cluster_idle(broker: str, _records: int, _work: Path) -> Figures:
    """Measure three idle nodes with a thousand partitions of three replicas, without client requests."""
    with (
        tempfile.TemporaryDirectory(prefix="pybench-cluster-") as folder,
        _own_cluster(broker, Path(folder)) as peer,
        Admin(peer.bootstrap_servers) as admin,
    ):
        admin.create_topics([NewTopic("idle", _IDLE_PARTITIONS, NODES)], timeout_ms=int(_PATIENCE_S * 1000))
        admin.wait_for_leaders("idle")
        _await_in_sync(admin, "idle", NODES)
        time.sleep(_IDLE_BEFORE_S)
        before = [cpu_time(pid) for pid in peer.pids]
        time.sleep(_IDLE_S)
        used = [cpu_time(pid).since(then) for pid, then in zip(peer.pids, before, strict=True)]
        resident = max(resident_bytes(pid) for pid in peer.pids)
    seconds = sum(one.user_s + one.system_s for one in used)
    return "three nodes at rest", {
        "seconds": _IDLE_S,
        "records": float(_IDLE_PARTITIONS),
        "idle_cpu_percent": 100 * seconds / _IDLE_S,
        "idle_rss_bytes": float(resident),
    }


FAULTS: dict[str, Callable[[ClusterPeer, int, Mapping[str, Any]], Figures]] = {
    "leader-kill": measure_leader_kill,
    "leader-pause": measure_leader_pause,
    "controller-kill": measure_controller_kill,
    "rolling-restart": measure_rolling_restart,
    "catch-up": measure_catch_up,
}
"""Loads of a running cluster, by name."""
OWN_CLUSTER: dict[str, Callable[[str, int, Path], Figures]] = {
    "cluster-start": measure_cluster_start,
    "cluster-idle": measure_cluster_idle,
    "testing-cluster": measure_testing_cluster,
}
"""Loads that start their own cluster, by name."""


class _Steady:
    """A context manager that runs `brokerload steady` on one partition."""

    def __init__(self, peer: ClusterPeer, topic: str, records: int, properties: Mapping[str, Any]) -> None:
        self._rate, self._partition = float(properties["rate"]), TopicPartition(topic, 0)
        self._words = [str(_program()), "steady", "-b", peer.bootstrap_servers, "-t", topic, "-s", "100"]
        self._words += ["-n", str(records), "-r", str(self._rate)]
        self._words += [word for key, value in properties.items() if key != "rate" for word in ("-X", f"{key}={value}")]

    def __enter__(self) -> _Steady:
        self._process = subprocess.Popen(self._words, stdout=subprocess.PIPE)
        self._begun = time.monotonic()
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def await_records(self, admin: Admin, seconds: float) -> None:
        """Wait for as many records as the rate yields in `seconds`. Raises ClusterLoadError."""
        deadline = time.monotonic() + _PATIENCE_S
        wanted: int | None = None
        while True:
            end = self._end_offset(admin)
            if end is not None:
                wanted = end + int(self._rate * seconds) if wanted is None else wanted
                if end >= wanted:
                    return
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise ClusterLoadError(f"the load does not go on: end offset {end}, wanted {wanted}")
            time.sleep(_PAUSE_S)

    def await_half_second(self) -> None:
        """Wait until half a second after one of the client's metadata checks, which run once a second.

        The cost of a fault depends on the time to the next check, which is then equal for all brokers.
        """
        time.sleep((self._begun + _HALF_S - time.monotonic()) % 1)

    def end(self) -> Figures:
        """End the load and return its output."""
        self._process.send_signal(signal.SIGTERM)
        printed, _ = self._process.communicate(timeout=_PATIENCE_S)
        document = json.loads(printed)
        figures = {name: float(value) for name, value in document.items() if isinstance(value, int | float)}
        return f"brokerload steady -s 100 -r {self._rate:g}", figures | {"records": figures["acknowledged"]}

    def _end_offset(self, admin: Admin) -> int | None:
        try:
            return admin.list_offsets({self._partition: LATEST})[self._partition].offset
        except ClientError:
            return None


def _one_fault(
    peer: ClusterPeer,
    records: int,
    properties: Mapping[str, Any],
    begin: Callable[[int], None],
    mend: Callable[[int], None],
) -> Figures:
    with Admin(peer.bootstrap_servers) as admin, _topic(admin) as topic:
        with _Steady(peer, topic, records, properties) as steady:
            steady.await_records(admin, _BEFORE_S)
            leader = admin.describe_topics([topic])[0].partitions[0].leader
            steady.await_half_second()
            begin(leader)
            try:
                steady.await_records(admin, _BEFORE_S)
                figures = steady.end()
            finally:
                mend(leader)
        _await_in_sync(admin, topic, NODES)
        return figures


@contextlib.contextmanager
def _topic(admin: Admin) -> Iterator[str]:
    """Yield a topic of one partition with an in-sync replica on every node. Deletes the topic at the end."""
    name = f"fault-{next(_numbers)}"
    admin.create_topics([NewTopic(name, 1, NODES)])
    try:
        admin.wait_for_leaders(name)
        _await_in_sync(admin, name, NODES)
        yield name
    finally:
        admin.delete_topics([name])


def _await_in_sync(admin: Admin, topic: str, replicas: int) -> None:
    """Wait until each partition has this many in-sync replicas. Raises ClusterLoadError."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        with contextlib.suppress(ClientError):
            short = [p for p in admin.describe_topics([topic])[0].partitions if len(p.isr) < replicas]
            if not short:
                return
        if time.monotonic() > deadline:
            raise ClusterLoadError(f"{topic} has not {replicas} replicas in sync after {_PATIENCE_S:.0f} s")
        time.sleep(_PAUSE_S)


def _own_cluster(broker: str, directory: Path) -> ClusterPeer:
    make = KafkaCluster if broker.startswith("kafka") else PybrokerCluster
    return make(directory)


def _program() -> Path:
    return build_directory() / "cclient" / "brokerload"
