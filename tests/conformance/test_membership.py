"""Kafka's own kafka-metadata-quorum on a quorum whose voters the metadata log names, by brokers and by controllers."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.conformance.test_config_tools import ours
from tests.support import kafka_tools, programs
from tests.support.dynamic_cluster import DynamicCluster, dynamic_cluster, shown

# A test starts a virtual machine for each run of Kafka's tools.
pytestmark = [pytest.mark.java, pytest.mark.process]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DynamicCluster]:
    programs.kafka_tools()
    with dynamic_cluster(tmp_path_factory.mktemp("quorum"), 1) as running:
        running.wait_voters(1)
        running.join(2)
        running.start(2)
        yield running


def kafkas(*words: str) -> tuple[int, str]:
    """Status and output of Kafka's tool."""
    ran = kafka_tools.run("metadata-quorum", *words)
    return ran.returncode, ran.stdout + ran.stderr


def at_broker(cluster: DynamicCluster) -> tuple[str, str]:
    return "--bootstrap-server", cluster.nodes[1].node.address


def at_controller(cluster: DynamicCluster) -> tuple[str, str]:
    return "--bootstrap-controller", cluster.controller_of(1)


def voters(text: str) -> list[str]:
    """The ids in the line CurrentVoters."""
    [line] = re.findall(r"^CurrentVoters: +(.*)$", text, re.MULTILINE)
    return re.findall(r'"id": (\d+)', line)


def test_kafkas_tool_adds_describes_and_removes_a_controller(cluster: DynamicCluster) -> None:
    added = kafkas(
        *at_controller(cluster),
        "--command-config",
        str(cluster.nodes[2].node.settings),
        "add-controller",
    )
    directory = shown(cluster.directory_id(2))
    assert added == (
        0,
        f"Added controller 2 with directory id {directory} and endpoints: CONTROLLER://{cluster.controller_of(2)}\n",
    )
    status, text = kafkas(*at_controller(cluster), "describe", "--status")
    assert (status, voters(text)) == (0, ["1", "2"])
    assert f'"endpoints": ["CONTROLLER://{cluster.controller_of(2)}"]' in text
    status, text = kafkas(*at_broker(cluster), "describe", "--replication")
    assert (status, directory in text) == (0, True)
    status, text = kafkas(*at_broker(cluster), "remove-controller", "-i", "2", "-d", directory)
    assert (status, text.split()) == (0, f"Removed KRaft controller 2 with directory id {directory}".split())
    cluster.wait_voters(1)


def test_a_voter_twice_and_none_are_refused_in_kafkas_words(cluster: DynamicCluster) -> None:
    settings = str(cluster.nodes[1].node.settings)
    status, text = kafkas(*at_broker(cluster), "--command-config", settings, "add-controller")
    replica = f"ReplicaKey(id=1, directoryId={shown(cluster.directory_id(1))})"
    assert status == 1
    assert (
        f"DuplicateVoterException: The voter id for {replica} is already part of the set of voters [{replica}]" in text
    )
    other = shown(b"o" * 16)
    status, text = kafkas(*at_controller(cluster), "remove-controller", "-i", "1", "-d", other)
    assert status == 1
    assert f"VoterNotFoundException: Cannot remove voter ReplicaKey(id=1, directoryId={other}) from the set" in text


def test_our_command_prints_the_same(cluster: DynamicCluster) -> None:
    for way in (at_broker(cluster), at_controller(cluster)):
        status, text = kafkas(*way, "describe", "--status")
        assert status == 0

        def steady(lines: list[str]) -> list[str]:
            return [line for line in lines if not line.startswith(("HighWatermark", "MaxFollowerLag"))]

        assert steady(ours("metadata-quorum", *way, "describe", "--status")) == steady(text.splitlines())


def test_the_level_of_kraft_version_in_force_is_taken(cluster: DynamicCluster) -> None:
    words = ("upgrade", "--feature", "kraft.version=1")
    ran = kafka_tools.run("features", *at_controller(cluster), *words)
    assert (ran.returncode, ran.stdout) == (0, "kraft.version was upgraded to 1.\n")
    assert ours("features", *at_broker(cluster), *words) == ["kraft.version was upgraded to 1."]
