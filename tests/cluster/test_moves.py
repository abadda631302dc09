"""Moves between log directories under load: nothing acknowledged is lost or doubled, whenever the broker is killed."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import confluent_kafka.admin
import pytest

from pybroker.client import Admin, Replica, TopicPartition
from pybroker.client.administration.topics import BROKER, SET, ConfigChange
from tests.cluster.conftest import small_file_system
from tests.support.batches import batch_of
from tests.support.conditions import wait_until
from tests.support.numbered_load import PARTITIONS, Load, read_all
from tests.support.processes import BrokerProcess
from tests.support.wire import Wire, produce, produced

pytestmark = pytest.mark.process

TOPIC = "moved"
THROTTLE = "replica_alter_log_dirs_io_max_bytes_per_second"
MEBIBYTE = 1 << 20

Places = dict[int, dict[str, bool]]
"""By partition: the log directories that it stands in, and whether as a future replica."""


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, Path]:
    """Two log directories."""
    return tmp_path / "first", tmp_path / "second"


@pytest.fixture
def start(make_broker: Callable[..., BrokerProcess], paths: tuple[Path, Path]) -> Callable[..., BrokerProcess]:
    """Starts a broker with both, whose segments are small, so that moves meet rolls."""

    def start(second: Path = paths[1], **settings: str) -> BrokerProcess:
        dirs = f"{paths[0]},{second}"
        return make_broker(paths[0], log_dirs=dirs, log_segment_bytes=str(8 * MEBIBYTE), **settings).start()

    return start


def create(address: str) -> None:
    """Make the topic."""
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": address, "log_level": 0})
    admin.create_topics([confluent_kafka.admin.NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(60)


def places(address: str) -> Places:
    """Where the topic's partitions stand."""
    found: Places = {index: {} for index in range(PARTITIONS)}
    with Admin(address) as admin:
        for path, directory in admin.describe_log_dirs([1])[1].items():
            for partition, replica in directory.replicas.items():
                if partition.topic == TOPIC:
                    found[partition.partition][path] = replica.is_future
    return found


def homes(address: str) -> dict[int, str]:
    """The directory of each partition's log."""
    return {
        index: next(path for path, future in there.items() if not future) for index, there in places(address).items()
    }


def move_all(address: str, paths: tuple[Path, Path]) -> dict[int, str]:
    """Ask for the move of each partition to the other directory; where they go."""
    targets = {index: next(str(path) for path in paths if str(path) != home) for index, home in homes(address).items()}
    requested = {Replica(TopicPartition(TOPIC, index), 1): path for index, path in targets.items()}
    with Admin(address) as admin:
        assert set(admin.alter_replica_log_dirs(requested).values()) == {None}
    return targets


def lie_in(address: str, targets: dict[int, str]) -> bool:
    """Whether each partition lies where it was to go, and nowhere else."""
    return places(address) == {index: {path: False} for index, path in targets.items()}


class Follower:
    """A consumer that reads along in a thread of its own, and sees that no offset is missing or comes twice."""

    def __init__(self, address: str) -> None:
        self.next = dict.fromkeys(range(PARTITIONS), 0)
        self.faults: list[str] = []
        self._stop = threading.Event()
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "unused",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,
            }
        )
        self._consumer.assign([confluent_kafka.TopicPartition(TOPIC, index, 0) for index in self.next])
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            for message in self._consumer.consume(1000, 0.1):
                error, index, offset = message.error(), message.partition(), message.offset()
                if error is not None:
                    if error.code() not in {
                        confluent_kafka.KafkaError._TRANSPORT,
                        confluent_kafka.KafkaError._ALL_BROKERS_DOWN,
                    }:
                        self.faults.append(str(error))
                    continue
                assert index is not None
                assert offset is not None
                if offset != self.next[index]:
                    self.faults.append(f"{index}: offset {offset} came instead of {self.next[index]}")
                self.next[index] = offset + 1

    def finish(self) -> None:
        """Stop reading."""
        self._stop.set()
        self._thread.join()
        self._consumer.close()


def check(address: str, load: Load) -> None:
    """See that every number is there once, in order, where it was acknowledged."""
    stored = defaultdict(list)
    for partition, offset, number in read_all(address, TOPIC):
        stored[partition].append(number)
        acknowledged = load.acknowledged.pop((partition, offset), number)
        assert acknowledged == number, f"offset {offset} was acknowledged for {acknowledged} and holds {number}"
    assert not load.acknowledged, f"{len(load.acknowledged)} acknowledged records are gone"
    for partition, numbers in stored.items():
        assert numbers == list(range(partition, load.sent, PARTITIONS))


def more(load: Load, count: int = 5_000) -> None:
    """Wait until so many more records are acknowledged."""
    goal = len(load.acknowledged) + count
    wait_until(lambda: len(load.acknowledged) >= goal or load.failures, within=60, what=f"{count} more records")
    assert load.failures == []


def test_logs_move_to_and_fro_under_load_and_nobody_notices(
    start: Callable[..., BrokerProcess], paths: tuple[Path, Path]
) -> None:
    broker = start()
    address = broker.bootstrap_servers
    create(address)
    load, follower = Load(address, TOPIC, idempotent=True), Follower(address)
    try:
        for _ in range(3):
            more(load)
            targets = move_all(address, paths)
            wait_until(lambda targets=targets: lie_in(address, targets), within=60, what="all logs have moved")  # type: ignore[misc]
        more(load)
    finally:
        load.finish()
        ends = {index: sum(1 for at, _ in load.acknowledged if at == index) for index in range(PARTITIONS)}
        try:
            wait_until(lambda: follower.next == ends or follower.faults, within=60, what="all is read")
        finally:
            follower.finish()
    assert (load.failures, follower.faults) == ([], [])
    check(address, load)
    assert broker.terminate() == 0
    for path in paths:
        assert [entry.name for entry in path.iterdir() if entry.name.endswith(("-future", "-delete", "-stray"))] == []


def test_a_move_that_is_killed_goes_on_at_the_next_start(
    start: Callable[..., BrokerProcess], paths: tuple[Path, Path]
) -> None:
    # What the load has written takes hours at this pace, on any machine.
    broker = start(**{THROTTLE: "100"})
    address = broker.bootstrap_servers
    create(address)
    load = Load(address, TOPIC, idempotent=True)
    try:
        more(load, 20_000)
        targets = move_all(address, paths)
        for _ in range(2):
            wait_until(lambda: bytes_copied(paths) > 0, within=60, what="the copying has begun")
            more(load)
            broker.kill()
            broker.start()
            assert all(True in there.values() for there in places(address).values()), "all are on their way again"
    finally:
        load.finish()
    with Admin(address) as admin:
        change = ConfigChange(THROTTLE.replace("_", "."), str(1 << 40), SET)
        admin.alter_configs("1", [change], BROKER)
    wait_until(lambda: lie_in(address, targets), within=60, what="all logs have moved")
    assert load.failures == []
    check(address, load)
    # What was killed at any time has to open again where it is now, with all that was acknowledged.
    broker.kill()
    broker.start()
    assert lie_in(address, targets)


def bytes_copied(paths: tuple[Path, Path]) -> int:
    """Bytes of records in the directories of future replicas."""
    found = (file for path in paths for file in path.glob("*-future/*.log"))
    return sum(file.stat().st_size for file in found)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB of its own."""
    with small_file_system(tmp_path / "disk", 8) as where:
        yield where


def test_a_log_that_does_not_fit_stays_where_it_is(
    start: Callable[..., BrokerProcess], paths: tuple[Path, Path], small_disk: Path
) -> None:
    other = small_disk / "logs"
    broker = start(other, log_index_size_max_bytes="65536")
    address = broker.bootstrap_servers
    create(address)
    both = (paths[0], other)
    (index, *_) = (index for index, home in homes(address).items() if home == str(paths[0]))
    with Wire(address) as wire:
        for number in range(12):
            response = produced(wire.query(produce(TOPIC, batch_of(b"x" * (MEBIBYTE - 200)), partition=index)))
            assert (response.error_code, response.base_offset) == (0, number)
        with Admin(address) as admin:
            assert set(
                admin.alter_replica_log_dirs({Replica(TopicPartition(TOPIC, index), 1): str(other)}).values()
            ) == {None}
        wait_until(lambda: places(address)[index] == {str(paths[0]): False}, within=60, what="the move is given up")
        assert bytes_copied(both) == 0
        response = produced(wire.query(produce(TOPIC, batch_of(b"x"), partition=index)))
        assert (response.error_code, response.base_offset) == (0, 12)
        with Admin(address) as admin:
            assert {directory.error for directory in admin.describe_log_dirs([1])[1].values()} == {0}
