"""Several log directories: one that fails goes offline alone, whatever it is that failed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import small_file_system
from tests.support.batches import batch_of, read_batches
from tests.support.conditions import wait_until
from tests.support.processes import BrokerProcess
from tests.support.wire import Wire, fetch, fetched, produce, produced

pytestmark = pytest.mark.process

MEBIBYTE = 1 << 20
TOPIC = "spread"
LEADER_NOT_AVAILABLE = 5
STORAGE_ERROR = 56
PREFERRED_LEADER_NOT_AVAILABLE = 80
ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
PREFERRED, UNCLEAN = 0, 1
RECORDS = 3


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MiB of its own."""
    with small_file_system(tmp_path / "disk", 24) as where:
        yield where


@pytest.fixture
def spread(make_broker: Callable[..., BrokerProcess], tmp_path: Path) -> Callable[..., BrokerProcess]:
    """Starts a broker with a sound directory and another one."""

    def start(other: Path, **settings: str) -> BrokerProcess:
        first = tmp_path / "first"
        broker = make_broker(first, log_dirs=f"{first},{other}", log_index_size_max_bytes="65536", **settings)
        return broker.start()

    return start


def create(wire: Wire, *, partitions: int = 4) -> None:
    """Make the topic and put the same records into each partition."""
    topic = {"name": TOPIC, "num_partitions": partitions, "replication_factor": 1}
    wire.call("CreateTopics", 7, topics=[topic], timeout_ms=10_000)
    for index in range(partitions):
        for number in range(RECORDS):
            response = produced(wire.query(produce(TOPIC, batch_of(b"%d-%d" % (index, number)), partition=index)))
            assert (response.error_code, response.base_offset) == (0, number)


def check(wire: Wire, index: int) -> None:
    """See that everything that was acknowledged is in a partition."""
    part = fetched(wire.query(fetch(TOPIC, 0, partitions=(index,), partition_max_bytes=1 << 20)))
    assert part.error_code == 0
    values = [value for batch in read_batches(part.records) for value in batch.values]
    assert values[:RECORDS] == [b"%d-%d" % (index, number) for number in range(RECORDS)]


def directories(wire: Wire) -> dict[str, Any]:
    """The broker's log directories, by path."""
    response = wire.call("DescribeLogDirs", 4, topics=None)
    assert response.error_code == 0
    return {result.log_dir: result for result in response.results}


def partitions_in(result: Any) -> set[int]:
    """The topic's partitions in one directory."""
    return {part.partition_index for topic in result.topics if topic.name == TOPIC for part in topic.partitions}


def responses(wire: Wire, index: int, code: int) -> bool:
    """Whether a produce to a partition is answered with this error code."""
    return bool(produced(wire.query(produce(TOPIC, batch_of(b"x"), partition=index))).error_code == code)


Leadership = tuple[int, int, list[int], list[int]]


def leaders(wire: Wire) -> dict[int, Leadership]:
    """What Metadata says of each partition: error, leader, in-sync and offline replicas."""
    (topic,) = wire.call("Metadata", 12, topics=[{"name": TOPIC}], allow_auto_topic_creation=False).topics
    return {
        part.partition_index: (part.error_code, part.leader_id, part.isr_nodes, part.offline_replicas)
        for part in topic.partitions
    }


WITH_LEADER: Leadership = (0, 1, [1], [])
WITHOUT_LEADER: Leadership = (LEADER_NOT_AVAILABLE, -1, [1], [1])


def expect_leaderless(wire: Wire, lost: set[int]) -> None:
    """Wait until exactly the `lost` partitions have no leader and their replica is offline."""
    expected = {index: WITHOUT_LEADER if index in lost else WITH_LEADER for index in range(4)}
    wait_until(lambda: leaders(wire) == expected, within=60, what=f"the partitions {lost} have no leader")


def expect_no_election(wire: Wire, lost: set[int]) -> None:
    """See that nobody can be elected for the `lost` partitions, and that the others need no election."""
    for kind, code in ((PREFERRED, PREFERRED_LEADER_NOT_AVAILABLE), (UNCLEAN, ELIGIBLE_LEADERS_NOT_AVAILABLE)):
        response = wire.call("ElectLeaders", 2, election_type=kind, topic_partitions=None, timeout_ms=10_000)
        (mine,) = [topic for topic in response.replica_election_results if topic.topic == TOPIC]
        assert {one.partition_id: one.error_code for one in mine.partition_result} == dict.fromkeys(lost, code)
    described = wire.call(
        "DescribeTopicPartitions", 0, topics=[{"name": TOPIC}], response_partition_limit=9, cursor=None
    )
    shown = {
        part.partition_index: (part.error_code, part.leader_id, part.isr_nodes, part.offline_replicas)
        for part in described.topics[0].partitions
    }
    assert shown == {index: (0, *WITHOUT_LEADER[1:]) if index in lost else WITH_LEADER for index in range(4)}


def offline(wire: Wire, path: Path) -> bool:
    """Whether the broker reports that a directory failed."""
    return bool(directories(wire)[str(path)].error_code == STORAGE_ERROR)


def test_a_directory_on_a_full_disk_goes_offline_alone(spread: Callable[..., BrokerProcess], small_disk: Path) -> None:
    other = small_disk / "data"
    broker = spread(other)
    with Wire(broker.bootstrap_servers) as wire:
        create(wire)
        described = directories(wire)
        assert described[str(other)].total_bytes == 24 * MEBIBYTE
        here, there = partitions_in(described[str(broker.directory)]), partitions_in(described[str(other)])
        assert (len(here), len(there)) == (2, 2)
        filled = min(there)
        for _ in range(64):
            response = produced(wire.query(produce(TOPIC, batch_of(b"x" * (MEBIBYTE // 2)), partition=filled)))
            if response.error_code:
                break
        assert response.error_code == STORAGE_ERROR
        wait_until(lambda: offline(wire, other), within=60, what="the full directory is offline")
        for index in there:
            wait_until(partial(responses, wire, index, STORAGE_ERROR), within=60, what=f"partition {index} is lost")
            assert fetched(wire.query(fetch(TOPIC, 0, partitions=(index,)))).error_code == STORAGE_ERROR
        expect_leaderless(wire, there)
        requested = {"partition_index": min(there), "timestamp": -1}
        response = wire.call("ListOffsets", 7, topics=[{"name": TOPIC, "partitions": [requested]}])
        assert response.topics[0].partitions[0].error_code == STORAGE_ERROR
        for index in here:
            assert produced(wire.query(produce(TOPIC, batch_of(b"x"), partition=index))).error_code == 0
            check(wire, index)
    assert broker.terminate() == 0
    subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
    broker.start()
    with Wire(broker.bootstrap_servers) as wire:
        assert [result.error_code for result in directories(wire).values()] == [0, 0]
        expect_leaderless(wire, set())
        for index in range(4):
            check(wire, index)


def test_a_directory_that_vanishes_goes_offline_and_comes_back_with_the_next_start(
    spread: Callable[..., BrokerProcess], tmp_path: Path
) -> None:
    other = tmp_path / "second"
    broker = spread(other, replica_high_watermark_checkpoint_interval_ms="50")
    with Wire(broker.bootstrap_servers) as wire:
        create(wire)
        there = partitions_in(directories(wire)[str(other)])
        hidden = other.rename(tmp_path / "hidden")
        wait_until(lambda: offline(wire, other), within=60, what="the directory that is gone is offline")
        for index in range(4):
            code = STORAGE_ERROR if index in there else 0
            wait_until(partial(responses, wire, index, code), within=60, what=f"partition {index} answers {code}")
        expect_leaderless(wire, there)
        expect_no_election(wire, there)
    broker.kill()
    other.write_text("a file where a directory is due")
    broker.start()
    with Wire(broker.bootstrap_servers) as wire:
        assert offline(wire, other)
        expect_leaderless(wire, there)
        expect_no_election(wire, there)
        for index in range(4):
            part = fetched(wire.query(fetch(TOPIC, 0, partitions=(index,))))
            assert part.error_code == (STORAGE_ERROR if index in there else 0)
    broker.terminate()
    other.unlink()
    hidden.rename(other)
    broker.start()
    with Wire(broker.bootstrap_servers) as wire:
        expect_leaderless(wire, set())
        expect_no_election(wire, set())
        for index in range(4):
            check(wire, index)
        assert partitions_in(directories(wire)[str(other)]) == there


def test_a_broker_without_the_directory_of_its_metadata_ends(
    spread: Callable[..., BrokerProcess], tmp_path: Path
) -> None:
    broker = spread(tmp_path / "second", replica_high_watermark_checkpoint_interval_ms="50")
    shutil.rmtree(broker.directory)
    assert broker.wait() != 0
    assert "failed" in broker.log
    assert "Traceback" not in broker.log
