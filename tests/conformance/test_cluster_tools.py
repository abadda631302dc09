"""Our commands about a cluster beside Kafka's tools on the same server: the same lines."""

from __future__ import annotations

import re

import pytest

from tests.conformance.conftest import Server
from tests.conformance.test_config_tools import kafkas, ours

# A test starts a virtual machine for each run of Kafka's tools.
pytestmark = [pytest.mark.java]


@pytest.mark.parametrize(
    "arguments",
    [
        ("describe",),
        ("upgrade", "--feature", "group.version=1", "--dry-run"),
        ("version-mapping",),
        ("version-mapping", "--release-version", "3.9"),
        ("version-mapping", "--release-version", "4.0-IV2"),
        ("version-mapping", "--release-version", "4.2-IV0"),
        ("feature-dependencies", "--feature", "eligible.leader.replicas.version=1", "--feature", "metadata.version=20"),
    ],
)
def test_features_are_shown_as_by_kafkas_tool(server: Server, arguments: tuple[str, ...]) -> None:
    at = ("--bootstrap-server", server.bootstrap_servers)
    assert ours("features", *at, *arguments) == kafkas("features", *at, *arguments)


@pytest.mark.parametrize(
    "arguments", [("cluster-id",), ("list-endpoints",), ("list-endpoints", "--include-fenced-brokers")]
)
def test_a_cluster_is_shown_as_by_kafkas_tool(server: Server, arguments: tuple[str, ...]) -> None:
    at = ("--bootstrap-server", server.bootstrap_servers)
    assert ours("cluster", *arguments, *at) == kafkas("cluster", *arguments, *at)


@pytest.mark.parametrize("arguments", [("--status",), ("--replication",), ("--replication", "--human-readable")])
def test_the_quorum_is_described_as_by_kafkas_tool(server: Server, arguments: tuple[str, ...]) -> None:
    requested = ("--bootstrap-server", server.bootstrap_servers, "describe", *arguments)

    def without_time(lines: list[str]) -> list[list[str]]:
        # The log goes on between the two, and times have more digits or fewer.
        return [
            re.sub(r"\d+(?= ms ago)|\b\d{2,}\b|(?<=HighWatermark:          )\d+", "n", line).split() for line in lines
        ]

    assert without_time(ours("metadata-quorum", *requested)) == without_time(kafkas("metadata-quorum", *requested))


def test_a_voter_that_is_to_go_is_named_as_by_kafkas_tool(server: Server) -> None:
    directory = "AAAAAAAAAAAAAAAAAAAAAA"
    requested = ("remove-controller", "-i", "1", "-d", directory, "--dry-run")
    at = ("--bootstrap-server", server.bootstrap_servers)
    assert ours("metadata-quorum", *at, *requested) == kafkas("metadata-quorum", *at, *requested)
