"""The loads of clusters, small, on three nodes of ours: the fault comes, the figures are there, all nodes run again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pybench.cluster_loads import FAULTS, measure_cluster_start, measure_testing_cluster
from pybench.loads import LOADS, Task, prepare
from pybench.peers.cluster import ClusterPeer
from pybench.peers.pybroker_cluster import PybrokerCluster
from pybroker.client import Admin

RATE = {"rate": 500}
MANY = 100_000


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterPeer]:
    prepare(set())
    with PybrokerCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.mark.parametrize("name", ["leader-kill", "rolling-restart"])
def test_a_fault_under_load_fails_no_record(peer: ClusterPeer, name: str) -> None:
    command, figures = FAULTS[name](peer, MANY, RATE)
    assert command.startswith("brokerload steady")
    assert figures["failed"] == 0
    assert figures["acknowledged"] == figures["sent"] < MANY
    assert 0 < figures["longest_gap_s"] * 1e3 <= figures["seconds"] * 1e3


def test_a_controllers_death_and_a_new_replica(peer: ClusterPeer) -> None:
    _, figures = FAULTS["controller-kill"](peer, 1, {})
    assert figures["answers_again_s"] > 0
    _, figures = FAULTS["catch-up"](peer, 1_000, {"record_bytes": 1_000})
    assert figures["bytes"] == 1_000_000
    with Admin(peer.bootstrap_servers) as admin:
        assert admin.list_topics() == []
    assert len(peer.pids) == 3


def test_a_cluster_that_is_started_for_one_record() -> None:
    command, figures = measure_cluster_start("pybroker-cluster", 1, Path())
    assert command == "three nodes"
    assert figures["acknowledged_s"] > 0


def test_a_cluster_of_a_test_that_is_started() -> None:
    command, figures = measure_testing_cluster("none", 1, Path())
    assert command == "pybroker.testing.Cluster(3)"
    assert figures["ready_s"] > 0


def test_the_copy_that_catching_up_is_held_against(tmp_path: Path) -> None:
    prepare(set())
    outcome = LOADS["c-copy"](Task("", str(tmp_path), 1_000, 0, {"record_bytes": 1_000}))
    assert outcome.figures["bytes"] == 1_000_000
    assert list(tmp_path.iterdir()) == []
