"""The file that names a local cluster's processes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pybroker.local_cluster.process import ProcessMark
from pybroker.local_cluster.state_file import ClusterState, NodeState, StateFileError, read_state, write_state


def test_what_was_written_is_read_and_one_node_is_replaced(tmp_path: Path) -> None:
    state = ClusterState("id", (NodeState(1, 9092, 19092), NodeState(2, 9093, 19093, 77, 5)))
    write_state(tmp_path, state)
    assert read_state(tmp_path) == state
    changed = state.replace(NodeState(1, 9092, 19092, 78, 6))
    assert [node.pid for node in changed.nodes] == [78, 77]


def test_no_file_is_no_cluster(tmp_path: Path) -> None:
    assert read_state(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{}", '{"cluster_id": 1, "nodes": []}', "[1]"])
def test_another_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "cluster.json").write_text(text)
    with pytest.raises(StateFileError, match=r"cluster\.json: not the state file of a local cluster"):
        read_state(tmp_path)


def test_a_process_of_another_time_with_the_same_id_is_not_meant() -> None:
    alive = Path(f"/proc/{os.getpid()}/stat").read_text().rpartition(")")[2].split()[19]
    assert ProcessMark(os.getpid(), int(alive)).is_alive()
    assert not ProcessMark(os.getpid(), int(alive) - 1).is_alive()
    assert not ProcessMark(0, 0).is_alive()
