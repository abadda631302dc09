"""Who is who in a local cluster, and the files that its nodes are started with."""

from __future__ import annotations

from pathlib import Path

from pybroker.config.properties import read_properties
from pybroker.local_cluster.layout import NodePorts, build_layout, build_properties, lay_out
from pybroker.storage.log_dirs.meta_properties import read_meta_properties

PORTS = [NodePorts(9092 + index, 19092 + index) for index in range(4)]


def test_the_first_three_nodes_vote_and_the_fourth_is_a_broker_alone(tmp_path: Path) -> None:
    nodes = build_layout(tmp_path, PORTS)
    assert [(node.node_id, node.is_voter) for node in nodes] == [(1, True), (2, True), (3, True), (4, False)]
    fourth = build_properties(nodes, nodes[3], {})
    assert fourth["process.roles"] == "broker"
    assert fourth["listeners"] == "PLAINTEXT://127.0.0.1:9095"
    assert fourth["controller.quorum.voters"] == "1@127.0.0.1:19092,2@127.0.0.1:19093,3@127.0.0.1:19094"


def test_what_is_given_stands_over_defaults_and_not_over_who_is_who(tmp_path: Path) -> None:
    nodes = build_layout(tmp_path, PORTS[:3])
    properties = build_properties(nodes, nodes[1], {"min.insync.replicas": "1", "node.id": "7"})
    assert (properties["min.insync.replicas"], properties["node.id"]) == ("1", "2")
    assert properties["default.replication.factor"] == "3"


def test_one_broker_replicates_nothing(tmp_path: Path) -> None:
    nodes = build_layout(tmp_path, PORTS[:1])
    properties = build_properties(nodes, nodes[0], {})
    assert (properties["default.replication.factor"], properties["min.insync.replicas"]) == ("1", "1")


def test_a_directory_keeps_its_cluster_id_when_nodes_come(tmp_path: Path) -> None:
    first = lay_out(build_layout(tmp_path, PORTS[:3]), {})
    nodes = build_layout(tmp_path, PORTS)
    assert lay_out(nodes, {}) == first
    metas = [read_meta_properties(node.data) for node in nodes]
    assert [(meta.cluster_id, meta.node_id) for meta in metas if meta] == [(first, number) for number in (1, 2, 3, 4)]
    assert len({meta.directory_id for meta in metas if meta}) == 4


def test_settings_survive_the_file(tmp_path: Path) -> None:
    nodes = build_layout(tmp_path, PORTS[:1])
    lay_out(nodes, {"broker.rack": "back\\slash"})
    assert read_properties(nodes[0].settings)["broker.rack"] == "back\\slash"


def test_settings_are_their_owners_alone_also_where_the_file_was_there(tmp_path: Path) -> None:
    (node,) = build_layout(tmp_path, PORTS[:1])
    node.directory.mkdir()
    node.settings.write_text("")
    node.settings.chmod(0o644)
    lay_out([node], {})
    assert node.settings.stat().st_mode & 0o777 == 0o600


def test_a_node_has_the_rack_that_it_is_given(tmp_path: Path) -> None:
    nodes = build_layout(tmp_path, PORTS[:2], ["a", None])
    racks = [build_properties(nodes, node, {}).get("broker.rack") for node in nodes]
    assert racks == ["a", None]
