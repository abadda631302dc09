"""A voter of `controller.quorum.voters` that has lost its disk gets the log again, from the leader that it had."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pybroker.storage.log_dirs.meta_properties import MetaProperties, random_id, write_meta_properties
from pybroker.testing import Cluster
from tests.support.conditions import wait_until
from tests.support.wire import Wire

SHORT_LOG = {
    "metadata.log.max.record.bytes.between.snapshots": "20000",
    "metadata.max.retention.bytes": "30000",
}
"""The leader soon has a snapshot in place of its log's beginning."""


def ends(address: str) -> dict[int, int]:
    """Where the log of each voter ends, as the leader knows it."""
    requested = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
    with Wire(address) as wire:
        partition = wire.call("DescribeQuorum", 1, topics=requested).topics[0].partitions[0]
    return {voter.replica_id: voter.log_end_offset for voter in partition.current_voters}


@pytest.mark.parametrize("properties", [{}, SHORT_LOG], ids=["log", "snapshot"])
def test_a_voter_without_its_disk_gets_the_log_from_the_same_leader(tmp_path: Path, properties: dict[str, str]) -> None:
    with Cluster(3, directory=tmp_path, properties=properties) as cluster:
        leader = cluster.controller()
        lost = next(node for node in (1, 2, 3) if node != leader)
        address = cluster.address(leader)
        topics = [{"name": f"t{number}", "num_partitions": 20, "replication_factor": 3} for number in range(20)]
        with Wire(address) as wire:
            assert {one.error_code for one in wire.call("CreateTopics", 7, topics=topics).topics} == {0}
        cluster.kill(lost)
        data = tmp_path / f"broker-{lost}" / "data"
        shutil.rmtree(data)
        data.mkdir()
        write_meta_properties(data, MetaProperties(cluster.cluster_id, lost, random_id()))
        cluster.start(lost)
        wait_until(lambda: len(set(ends(address).values())) == 1, within=60, what="the voter to catch up")
        cluster.wait_in_sync("t7", 0)
