"""A disk that fills up: the broker says so and stops, and what it acknowledged is there when there is room again."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pybroker.client.producer import Producer
from pybroker.testing import Broker
from tests.cluster.conftest import small_file_system
from tests.support.batches import batch_of, read_batches
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


def test_a_full_disk_is_told_and_acknowledged_records_are_kept(
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
                answer = produced(wire.ask(produce(TOPIC, batch)))
            except ConnectionError:
                break
            if answer.error_code != 0:
                assert answer.error_code == 56, "KAFKA_STORAGE_ERROR"
                break
            assert answer.base_offset == 2 * number
            acknowledged = number + 1
    assert 16 < acknowledged < 64
    assert broker.wait() != 0, "a broker whose only disk failed ends"
    told = [line for line in broker.log.splitlines() if "No space left" in line]
    assert told
    assert str(broker.directory) in told[0]
    assert "Traceback" not in broker.log
    assert "panicked" not in broker.log

    subprocess.run(["mount", "-o", "remount,size=128m", small_disk], check=True)
    broker.start()
    with Wire(broker.bootstrap_servers) as wire:
        for number in range(acknowledged):
            part = fetched(wire.ask(fetch(TOPIC, 2 * number, partition_max_bytes=1)))
            (stored,) = read_batches(part.records)
            assert stored.crc_holds
            assert stored.values[1] == b"%08d" % number
        answer = produced(wire.ask(produce(TOPIC, batch_of(b"room again"))))
        assert answer.error_code == 0
        assert answer.base_offset >= 2 * acknowledged


def test_a_disk_that_is_full_at_the_start_is_told(make_broker: Callable[..., BrokerProcess], small_disk: Path) -> None:
    ballast = os.open(small_disk / "ballast", os.O_WRONLY | os.O_CREAT)
    try:
        room = os.fstatvfs(ballast)
        os.posix_fallocate(ballast, 0, room.f_bavail * room.f_bsize)
    finally:
        os.close(ballast)
    broker = make_broker(small_disk / "data")
    broker.log_path = small_disk.with_name("broker.log")
    with pytest.raises(NotStartedError) as refused:
        broker.start()
    lines = [line for line in refused.value.log.splitlines() if line.startswith("pybroker start:")]
    assert len(lines) == 1, refused.value.log
    assert str(small_disk / "data") in lines[0]
    assert "No space left" in lines[0]
    assert "Traceback" not in refused.value.log


@pytest.mark.parametrize("preallocates", [True, False])
def test_a_preallocated_segment_has_the_blocks_of_all_of_it_at_once(preallocates: bool) -> None:
    settings = {"log.preallocate": str(preallocates).lower(), "log.segment.bytes": "1048576"}
    with Broker(properties=settings) as broker, Producer(broker.bootstrap_servers) as producer:
        producer.send("orders", b"v")
        producer.flush()
        status = (Path(broker.directory) / "orders-0" / f"{0:020}.log").stat()
        assert status.st_size < 1_048_576
        assert (status.st_blocks * 512 >= 1_048_576) is preallocates
