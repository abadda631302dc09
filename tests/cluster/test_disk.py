"""A disk that fills up: the broker says so and stops, and what it acknowledged is there when there is room again."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pybroker.client.administration.admin import Admin
from pybroker.client.administration.topics import NewTopic
from pybroker.client.producing.producer import Producer
from pybroker.testing import Broker
from tests.cluster.conftest import small_file_system
from tests.support.batches import batch_of, read_batches
from tests.support.conditions import wait_until
from tests.support.processes import BrokerProcess, NotStartedError
from tests.support.wire import Wire, fetch, fetched, produce, produced

pytestmark = pytest.mark.process

MEBIBYTE = 1 << 20
TOPIC = "filling"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 32 MiB of its own."""
    with small_file_system(tmp_path / "disk", 32) as where:
        yield where


def test_a_full_disk_is_reported_and_acknowledged_records_are_kept(
    make_broker: Callable[..., BrokerProcess], small_disk: Path
) -> None:
    broker = make_broker(small_disk / "data", log_segment_bytes=str(4 * MEBIBYTE), log_index_size_max_bytes="65536")
    broker.log_path = small_disk.with_name("broker.log")
    broker.start()
    acknowledged = 0
    with Wire(broker.bootstrap_servers) as wire:
        wire.call(
            "CreateTopics", 7, topics=[{"name": TOPIC, "num_partitions": 1, "replication_factor": 1}], timeout_ms=10_000
        )
        for number in range(64):
            batch = batch_of(b"%08d" % number * (MEBIBYTE // 16), b"%08d" % number)
            try:
                response = produced(wire.query(produce(TOPIC, batch)))
            except ConnectionError:
                break
            if response.error_code != 0:
                assert response.error_code == 56, "KAFKA_STORAGE_ERROR"
                break
            assert response.base_offset == 2 * number
            acknowledged = number + 1
    assert 16 < acknowledged < 64
    assert broker.wait() != 0, "a broker whose only disk failed ends"
    logged = [line for line in broker.log.splitlines() if "No space left" in line]
    assert logged
    assert str(broker.directory) in logged[0]
    assert "Traceback" not in broker.log
    assert "panicked" not in broker.log

    subprocess.run(["mount", "-o", "remount,size=128m", small_disk], check=True)
    broker.start()
    with Wire(broker.bootstrap_servers) as wire:
        for number in range(acknowledged):
            part = fetched(wire.query(fetch(TOPIC, 2 * number, partition_max_bytes=1)))
            (stored,) = read_batches(part.records)
            assert stored.crc_holds
            assert stored.values[1] == b"%08d" % number
        response = produced(wire.query(produce(TOPIC, batch_of(b"room again"))))
        assert response.error_code == 0
        assert response.base_offset >= 2 * acknowledged


def test_a_disk_without_room_for_what_is_set_aside_loses_nothing(
    make_broker: Callable[..., BrokerProcess], small_disk: Path
) -> None:
    broker = make_broker(small_disk / "data", log_index_size_max_bytes="65536")
    broker.log_path = small_disk.with_name("broker.log")
    broker.start()
    with Wire(broker.bootstrap_servers) as wire:
        wire.call(
            "CreateTopics", 7, topics=[{"name": TOPIC, "num_partitions": 1, "replication_factor": 1}], timeout_ms=10_000
        )
        for number in range(36):
            batch = batch_of(b"%08d" % number * (MEBIBYTE // 16))
            assert produced(wire.query(produce(TOPIC, batch))).error_code == 0
    broker.kill()
    (segment,) = (small_disk / "data").glob(f"{TOPIC}-0/*.log")
    with segment.open("r+b") as file:
        file.seek(MEBIBYTE + MEBIBYTE // 2)
        file.write(b"?")
    before = segment.read_bytes()
    with pytest.raises(NotStartedError) as refused:
        broker.start()
    assert refused.value.status == 1
    (logged,) = [line for line in broker.log.splitlines() if "cannot be opened" in line]
    assert "No space left" in logged
    assert str(segment.parent) in logged
    assert "Traceback" not in broker.log
    assert segment.read_bytes() == before, "what could not be set aside is where it was"
    assert [path.name for path in segment.parent.iterdir() if ".tail-" in path.name] == []

    subprocess.run(["mount", "-o", "remount,size=128m", small_disk], check=True)
    broker.start()
    (tail,) = segment.parent.glob("*.tail-*")
    kept = len(before) - tail.stat().st_size
    assert segment.read_bytes()[:kept] + tail.read_bytes() == before
    assert f"{TOPIC}-0" in broker.log
    with Wire(broker.bootstrap_servers) as wire:
        assert produced(wire.query(produce(TOPIC, batch_of(b"room again")))).error_code == 0


def test_a_disk_that_is_full_at_the_start_is_reported_with_the_file(
    make_broker: Callable[..., BrokerProcess], small_disk: Path
) -> None:
    ballast = os.open(small_disk / "ballast", os.O_WRONLY | os.O_CREAT)
    try:
        capacity = os.fstatvfs(ballast)
        os.posix_fallocate(ballast, 0, capacity.f_bavail * capacity.f_bsize)
    finally:
        os.close(ballast)
    broker = make_broker(small_disk / "data")
    broker.log_path = small_disk.with_name("broker.log")
    with pytest.raises(NotStartedError) as refused:
        broker.start()
    lines = [line for line in refused.value.log.splitlines() if line.startswith("pybroker start:")]
    assert len(lines) == 1, refused.value.log
    assert f"{small_disk / 'data' / '.lock'}: No space left" in lines[0]
    assert "Traceback" not in refused.value.log


@pytest.mark.parametrize(
    ("of_broker", "of_topic"), [("true", None), ("false", None), ("true", "false"), ("false", "true")]
)
def test_a_preallocated_segment_holds_the_blocks_of_all_of_it_until_it_is_rolled_or_closed(
    tmp_path: Path, of_broker: str, of_topic: str | None
) -> None:
    """`log.preallocate`, `preallocate`: Kafka gives the file its length at once, this broker its blocks (adr/0003)."""
    segment_bytes, record_bytes = 4 * MEBIBYTE, MEBIBYTE // 2
    preallocates = (of_topic or of_broker) == "true"
    settings = {"log.preallocate": of_broker, "log.segment.bytes": str(segment_bytes)}
    topic = NewTopic(TOPIC, configs={} if of_topic is None else {"preallocate": of_topic})
    with Broker(directory=tmp_path / "data", properties=settings) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topics([topic])
        with Producer(broker.bootstrap_servers) as producer:

            def append() -> list[os.stat_result]:
                producer.send(TOPIC, b"v" * record_bytes)
                producer.flush()
                return segments(tmp_path / "data")

            (active,) = append()
            assert active.st_size < 2 * record_bytes
            assert (held(active) >= segment_bytes) is preallocates
            rolled, active = wait_until(lambda: (found := append())[1:] and found, within=60, what="a second segment")
            assert held(rolled) < rolled.st_size + record_bytes
            assert rolled.st_size < segment_bytes
            assert (held(active) >= segment_bytes) is preallocates
    assert segments(tmp_path / "data")[0].st_size == rolled.st_size
    assert all(held(closed) < closed.st_size + record_bytes for closed in segments(tmp_path / "data"))


def segments(directory: Path) -> list[os.stat_result]:
    """The files of the topic's one partition, the oldest first."""
    return [path.stat() for path in sorted((directory / f"{TOPIC}-0").glob("*.log"))]


def held(file: os.stat_result) -> int:
    """The bytes of the blocks that a file has."""
    return file.st_blocks * 512
