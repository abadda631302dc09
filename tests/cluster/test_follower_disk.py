"""A follower's disk that fills up: its directory goes offline, the others go on, and it comes back with room."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybroker.client import Admin, NewTopic
from pybroker.client.administration.topics import TopicPartition
from pybroker.storage.log_dirs.meta_properties import MetaProperties, random_id, write_meta_properties
from pybroker.testing import Cluster
from tests.cluster.conftest import small_file_system
from tests.support.batches import batch_of
from tests.support.conditions import wait_until
from tests.support.wire import Wire, fetch, fetched, produce, produced

pytestmark = pytest.mark.process

MEBIBYTE = 1 << 20
TOPIC = "filling"
FOLLOWER = 3
PARTITIONS = 4
WAIT_S = 60.0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 32 MiB of its own."""
    with small_file_system(tmp_path / "small", 32) as where:
        yield where


@pytest.fixture
def cluster(tmp_path: Path, small_disk: Path) -> Iterator[Cluster]:
    """Three brokers, of which the last has a log directory on the small disk beside its own."""
    properties = {"log.segment.bytes": str(4 * MEBIBYTE), "log.index.size.max.bytes": "65536"}
    with Cluster(brokers=3, directory=tmp_path / "cluster", properties=properties) as cluster:
        cluster.stop(FOLLOWER)
        node = cluster._local.node(FOLLOWER)
        (small_disk / "logs").mkdir()
        write_meta_properties(small_disk / "logs", MetaProperties(cluster.cluster_id, FOLLOWER, random_id()))
        text = node.settings.read_text()
        assert f"log.dirs={node.data}\n" in text
        node.settings.write_text(text.replace(f"log.dirs={node.data}\n", f"log.dirs={node.data},{small_disk}/logs\n"))
        cluster.start(FOLLOWER)
        yield cluster


def partitions_of(cluster: Cluster) -> tuple[int, int]:
    """A partition on the follower's small disk, and one on its other."""
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])
        admin.wait_for_leaders(TOPIC)
        for partition in range(PARTITIONS):
            cluster.wait_in_sync(TOPIC, partition)
            cluster.move_leader(TOPIC, partition, 1)
        places: dict[bool, list[int]] = {True: [], False: []}
        for path, directory in admin.describe_log_dirs([FOLLOWER])[FOLLOWER].items():
            found = (replica.partition for replica in directory.replicas if replica.topic == TOPIC)
            places[path.endswith("/logs")] += found
    return places[True][0], places[False][0]


def test_a_follower_whose_disk_is_full_leaves_the_others_alone_and_comes_back(
    cluster: Cluster, small_disk: Path
) -> None:
    small, large = partitions_of(cluster)
    batch = batch_of(b"x" * (MEBIBYTE // 2))
    with Wire(cluster.address(1), timeout=WAIT_S) as wire:

        def sent(partition: int) -> int:
            response = produced(wire.query(produce(TOPIC, batch, partition=partition)))
            assert response.error_code == 0
            return int(response.base_offset)

        # Each is acknowledged by two replicas at least, while the third runs out of room.
        last = max(sent(small) for _ in range(80))
        cluster.wait_in_sync(TOPIC, small, brokers=[1, 2], timeout=WAIT_S)
        assert sent(small) == last + 1
        assert sent(large) == 0
        cluster.wait_in_sync(TOPIC, large, timeout=WAIT_S)
    assert FOLLOWER in cluster.running
    reported = [line for line in cluster.log(FOLLOWER).splitlines() if "No space left" in line]
    assert reported
    assert any(f"{small_disk}/logs" in line for line in reported)
    with Admin(cluster.bootstrap_servers) as admin:
        there = admin.describe_log_dirs([FOLLOWER])[FOLLOWER]
    assert TopicPartition(TOPIC, small) not in {
        replica for directory in there.values() for replica in directory.replicas
    }
    cluster.stop(FOLLOWER)
    subprocess.run(["mount", "-o", "remount,size=128m", str(small_disk)], check=True)
    cluster.start(FOLLOWER)
    cluster.wait_in_sync(TOPIC, small, timeout=WAIT_S)

    def has_all() -> bool:
        with Wire(cluster.address(FOLLOWER)) as wire:
            response = fetched(wire.query(fetch(TOPIC, last + 1, partitions=[small])))
        return response.error_code == 0 and len(response.records) > MEBIBYTE // 2

    wait_until(has_all, within=WAIT_S, what="the follower has what was acknowledged without it")
