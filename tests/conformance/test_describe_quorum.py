"""DescribeQuorum: the quorum of one, in every version, and what Kafka's own tool makes of it."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from tests.conformance.conftest import AGAINST_KAFKA, Server
from tests.support import kafka_tools, programs
from tests.support.wire import Wire

UNKNOWN_TOPIC_OR_PARTITION = 3
METADATA = "__cluster_metadata"


def query(wire: Wire, version: int, *topics: tuple[str, list[int]]) -> Any:
    """An answer about topics and the numbers of their partitions."""
    requested = [
        {"topic_name": name, "partitions": [{"partition_index": index} for index in partitions]}
        for name, partitions in topics
    ]
    return wire.call("DescribeQuorum", version, topics=requested)


@pytest.mark.parametrize("version", range(3))
def test_a_quorum_of_all_nodes_has_a_leader(wire: Wire, server: Server, version: int) -> None:
    before_ms = int(time.time() * 1000)
    response = query(wire, version, (METADATA, [0]))
    assert response.error_code == 0
    ((partition,),) = (topic.partitions for topic in response.topics)
    voters = {voter.replica_id: voter for voter in partition.current_voters}
    assert (partition.error_code, tuple(sorted(voters)), partition.observers) == (0, server.brokers, [])
    assert partition.leader_epoch >= 1
    voter = voters[partition.leader_id]
    assert voter.log_end_offset >= partition.high_watermark > 0
    if version >= 1:
        assert before_ms <= voter.last_fetch_timestamp == voter.last_caught_up_timestamp <= time.time() * 1000
    if version >= 2:
        assert (response.error_message, partition.error_message, voter.replica_directory_id) == ("", "", None)
        reached = [f"{listener.host}:{listener.port}" for node in response.nodes for listener in node.listeners]
        assert len(reached) == len(server.brokers)
        # One broker of ours has one listener for clients and controllers.
        assert AGAINST_KAFKA or len(reached) > 1 or reached == [server.bootstrap_servers]


def test_the_high_watermark_follows_what_is_committed(wire: Wire, topic_name: str) -> None:
    def high_watermark() -> int:
        return int(query(wire, 2, (METADATA, [0])).topics[0].partitions[0].high_watermark)

    before = high_watermark()
    wire.call(
        "CreateTopics",
        7,
        topics=[{"name": topic_name, "num_partitions": 3, "replication_factor": 1}],
        timeout_ms=10_000,
    )
    # The topic's record and one for each partition.
    assert high_watermark() >= before + 4


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize(
    "topics",
    [
        [("other", [0])],
        [(METADATA, [1])],
        [(METADATA, [0, 1])],
        [(METADATA, [0, 0])],
        [(METADATA, [0]), (METADATA, [0])],
        [(METADATA, [0]), ("other", [])],
        [(METADATA, [])],
        [],
    ],
    ids=str,
)
def test_whatever_is_not_the_metadata_partition_alone_is_unknown(
    wire: Wire, version: int, topics: list[tuple[str, list[int]]]
) -> None:
    response = query(wire, version, *topics)
    assert response.error_code == 0
    returned = [(topic.topic_name, [part.partition_index for part in topic.partitions]) for topic in response.topics]
    assert returned == topics
    for topic in response.topics:
        for partition in topic.partitions:
            assert (partition.error_code, partition.current_voters) == (UNKNOWN_TOPIC_OR_PARTITION, [])
            assert version < 2 or partition.error_message == "This server does not host this topic-partition."
    assert version < 2 or response.nodes == []


@pytest.mark.java
def test_kafkas_own_tool_describes_status_and_replication(server: Server, wire: Wire) -> None:
    programs.kafka_tools()

    def run(what: str) -> str:
        ran = kafka_tools.run("metadata-quorum", "--bootstrap-server", server.bootstrap_servers, "describe", what)
        assert (ran.returncode, ran.stderr) == (0, "")
        return ran.stdout

    lines = dict(re.findall(r"^(\w+): +(.*)$", run("--status"), re.MULTILINE))
    assert int(lines["LeaderId"]) in server.brokers
    assert lines["CurrentObservers"] == "[]"
    if len(server.brokers) == 1:
        assert (lines["MaxFollowerLag"], lines["MaxFollowerLagTimeMs"]) == ("0", "0")
    assert all(f'"id": {broker}' in lines["CurrentVoters"] for broker in server.brokers)
    assert lines["ClusterId"] == wire.call("Metadata", 12, topics=[]).cluster_id
    assert int(lines["HighWatermark"]) > 0
    head, *rows = run("--replication").strip().splitlines()
    names = [name.strip() for name in head.split("\t")]
    found = [dict(zip(names, map(str.strip, row.split("\t")), strict=False)) for row in rows]
    assert {one["NodeId"] for one in found} == set(map(str, server.brokers))
    (leader,) = (one for one in found if one["Status"] == "Leader")
    assert (leader["NodeId"], leader["Lag"]) == (lines["LeaderId"], "0")
