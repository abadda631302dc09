"""kill -9, a restart, and a stop under members: what was committed is there, and groups carry on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import confluent_kafka.admin
import pytest

from pybroker.storage.log_dirs.checkpoint import CLEANED_OFFSETS, read_checkpoint
from pybroker.storage.native import PartitionLog
from pybroker.testing import Broker
from tests.support.batches import read_batches
from tests.support.conditions import wait_until
from tests.support.processes import BrokerProcess
from tests.support.wire import Wire

ROUNDS = int(os.environ.get("PYBROKER_GROUP_KILL_ROUNDS", "5"))
PARTITIONS = 6
SEGMENT = 1 << 20  # the smallest that a topic may have
COORDINATOR_NOT_AVAILABLE = 15
REFUSAL = "__consumer_offsets cannot be created: segment.bytes=1000: expected a whole number from 1048576 to 2147483647"

pytestmark = [pytest.mark.process, pytest.mark.timeout(300 + 30 * ROUNDS)]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path / "data", {"group.initial.rebalance.delay.ms": "0"})
    process.start()
    yield process
    process.kill()


def commit(wire: Wire, group: str, offset: int, metadata: str = "") -> int:
    part = {
        "partition_index": 0,
        "committed_offset": offset,
        "committed_leader_epoch": -1,
        "committed_metadata": metadata,
    }
    response = wire.call(
        "OffsetCommit",
        8,
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[{"name": "t", "partitions": [part]}],
    )
    return int(response.topics[0].partitions[0].error_code)


def committed(wire: Wire, group: str) -> tuple[int, int]:
    wanted = {"group_id": group, "topics": [{"name": "t", "partition_indexes": [0]}]}
    response = wire.call("OffsetFetch", 8, groups=[wanted], require_stable=False).groups[0]
    return response.error_code, -1 if response.error_code else response.topics[0].partitions[0].committed_offset


def test_every_acknowledged_offset_survives_kills(broker: BrokerProcess) -> None:
    groups = [f"g{number}" for number in range(20)]
    acknowledged: dict[str, int] = {}
    with Wire(broker.bootstrap_servers) as wire:
        wire.call(
            "CreateTopics",
            7,
            topics=[{"name": "t", "num_partitions": 1, "replication_factor": 1}],
            timeout_ms=10_000,
        )
    for turn in range(ROUNDS):
        with Wire(broker.bootstrap_servers) as wire:
            wire.call("FindCoordinator", 4, key_type=0, coordinator_keys=groups)
            for group in groups:
                wait_until(lambda group=group: committed(wire, group)[0] == 0, within=60, what=f"{group} is loaded")  # type: ignore[misc]
                assert committed(wire, group) == (0, acknowledged.get(group, -1))
                offset = 100 * turn + groups.index(group)
                if commit(wire, group, offset) == 0:
                    acknowledged[group] = offset
        if turn % 2:
            assert broker.terminate() == 0
        else:
            broker.kill()
        broker.start()
    with Wire(broker.bootstrap_servers) as wire:
        for group in groups:
            wait_until(lambda group=group: committed(wire, group)[0] == 0, within=60, what=f"{group} is loaded")  # type: ignore[misc]
            assert committed(wire, group) == (0, acknowledged[group])


def test_every_acknowledged_offset_survives_the_compaction_of_its_topic_and_kills(tmp_path: Path) -> None:
    settings = {
        "offsets.topic.num.partitions": "1",
        "offsets.topic.segment.bytes": str(SEGMENT),
        "log.cleaner.backoff.ms": "50",
        "log.cleaner.min.cleanable.ratio": "0.01",
    }
    broker = BrokerProcess(tmp_path / "data", settings)
    groups = [f"g{number}" for number in range(10)]
    log = broker.directory / "__consumer_offsets-0"

    def cleaned_offset() -> int:
        return read_checkpoint(broker.directory / CLEANED_OFFSETS).get(("__consumer_offsets", 0), 0)

    try:
        broker.start()
        with Wire(broker.bootstrap_servers) as wire:
            topic = {"name": "t", "num_partitions": 1, "replication_factor": 1}
            wire.call("CreateTopics", 7, topics=[topic], timeout_ms=10_000)
            wire.call("FindCoordinator", 4, key_type=0, coordinator_keys=groups)
        for turn in range(3):
            with Wire(broker.bootstrap_servers) as wire:
                wait_until(lambda: committed(wire, "g0")[0] == 0, within=60, what="the groups are loaded")
                before = cleaned_offset()
                for number in range(30):
                    for group in groups:
                        assert commit(wire, group, 1000 * turn + number, "m" * 4000) == 0
                wait_until(lambda: cleaned_offset() > before, within=60, what="a pass over the offsets")  # noqa: B023
                held = sum(path.stat().st_size for path in log.glob("*.log"))
                assert held < 2 * SEGMENT, "what was superseded is gone"
            broker.kill()
            broker.start()
            with Wire(broker.bootstrap_servers) as wire:
                wait_until(lambda: committed(wire, "g0")[0] == 0, within=60, what="the groups are loaded")
                assert {group: committed(wire, group) for group in groups} == dict.fromkeys(
                    groups, (0, 1000 * turn + 29)
                )
    finally:
        broker.kill()


def test_an_offsets_topic_that_cannot_be_created_is_reported_to_the_client_and_once_in_the_log(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "data", {"offsets.topic.segment.bytes": "1000"}).start() as broker:
        with Wire(broker.bootstrap_servers) as wire:
            for _ in range(3):
                response = wire.call("FindCoordinator", 4, key_type=0, coordinator_keys=["g", "h"])
                for key, found in zip("gh", response.coordinators, strict=True):
                    assert (found.key, found.error_code, found.node_id) == (key, COORDINATOR_NOT_AVAILABLE, -1)
                    assert found.error_message == REFUSAL
            old = wire.call("FindCoordinator", 2, key_type=0, key="g")
            assert (old.error_code, old.error_message) == (COORDINATOR_NOT_AVAILABLE, REFUSAL)
        (warned,) = [line for line in broker.log.splitlines() if REFUSAL in line]
        assert "WARN" in warned
        assert "offsets.topic.segment.bytes=1000" in warned
        assert broker.terminate() == 0


def test_a_commit_that_fits_no_batch_is_refused_and_others_are_taken(broker: BrokerProcess) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        topic = {"name": "t", "num_partitions": 1, "replication_factor": 1}
        wire.call("CreateTopics", 7, topics=[topic], timeout_ms=10_000)
        wire.call("FindCoordinator", 4, key_type=0, coordinator_keys=["g"])
        for group in "gh":
            wait_until(lambda group=group: committed(wire, group)[0] == 0, within=60, what=f"{group} is loaded")  # type: ignore[misc]
        config = {"name": "max.message.bytes", "config_operation": 0, "value": "1000"}
        resource = {"resource_type": 2, "resource_name": "__consumer_offsets", "configs": [config]}
        (altered,) = wire.call("IncrementalAlterConfigs", 1, resources=[resource], validate_only=False).responses
        assert altered.error_code == 0
        assert [commit(wire, "g", 1), commit(wire, "g", 2, "x" * 2000), commit(wire, "h", 3)] == [0, -1, 0]
        assert [committed(wire, group) for group in "gh"] == [(0, 1), (0, 3)]


def test_consumers_carry_on_over_kills_of_their_broker(broker: BrokerProcess) -> None:
    address = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0, "reconnect.backoff.max.ms": 200}
    admin = confluent_kafka.admin.AdminClient(address)
    admin.create_topics([confluent_kafka.admin.NewTopic("t", PARTITIONS, 1)])["t"].result(60)
    producer = confluent_kafka.Producer({**address, "enable.idempotence": True})
    consumers = [
        confluent_kafka.Consumer(
            {
                **address,
                "group.id": "carry-on",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 300,
            }
        )
        for _ in range(2)
    ]
    for consumer in consumers:
        consumer.subscribe(["t"])
    seen: set[int] = set()
    sent = 0

    def read() -> bool:
        for consumer in consumers:
            for got in consumer.consume(200, 0.05):
                if got.error() is None:
                    seen.add(int(got.value() or b""))
        return len(seen) == sent

    try:
        for _ in range(2):
            for _ in range(300):
                producer.produce("t", b"%d" % sent, partition=sent % PARTITIONS)
                sent += 1
            assert producer.flush(60) == 0
            wait_until(read, within=60, what="every record is read")
            for consumer in consumers:
                if consumer.assignment():
                    consumer.commit(asynchronous=False)
            broker.kill()
            broker.start()
        for _ in range(60):
            producer.produce("t", b"%d" % sent, partition=sent % PARTITIONS)
            sent += 1
        assert producer.flush(60) == 0
        wait_until(read, within=60, what="every record is read")
    finally:
        for consumer in consumers:
            consumer.close()


@pytest.mark.parametrize(("buffer_bytes", "batches_a_read"), [(1, 1), (4000, 3), (5 * 1024**2, 20)])
def test_offsets_are_loaded_in_pieces_of_the_buffers_size_and_a_larger_batch_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, buffer_bytes: int, batches_a_read: int
) -> None:
    """`offsets.load.buffer.size`; twenty batches of 1.2 kB are loaded, each of one commit."""
    groups = [f"g{number}" for number in range(20)]
    read: list[int] = []

    class Watched:
        """A log of the offsets topic that notes down how many bytes each reading of it brings."""

        def __init__(self, *given: Any) -> None:
            self._log = PartitionLog(*given)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._log, name)

        def read(self, offset: int, max_bytes: int) -> bytes:
            batches = self._log.read(offset, max_bytes)
            read.append(len(batches))
            return batches

    settings = {"offsets.load.buffer.size": str(buffer_bytes), "offsets.topic.num.partitions": "1"}
    topic = {"name": "t", "num_partitions": 1, "replication_factor": 1}
    with Broker(directory=tmp_path, properties=settings) as first, Wire(first.bootstrap_servers) as wire:
        wire.call("CreateTopics", 7, topics=[topic], timeout_ms=10_000)
        wire.call("FindCoordinator", 4, key_type=0, coordinator_keys=groups)
        wait_until(lambda: committed(wire, "g0")[0] == 0, within=60, what="the coordinator is there")
        assert [commit(wire, group, groups.index(group), "m" * 1100) for group in groups] == [0] * len(groups)
    (segment,) = (tmp_path / "__consumer_offsets-0").glob("*.log")
    sizes = [len(batch.raw) for batch in read_batches(segment.read_bytes())]
    assert len(sizes) == len(groups)

    monkeypatch.setattr("pybroker.node.coordinators.PartitionLog", Watched)
    with Broker(directory=tmp_path, properties=settings) as second, Wire(second.bootstrap_servers) as wire:
        wait_until(lambda: committed(wire, "g0")[0] == 0, within=60, what="the groups are loaded")
        assert [committed(wire, group) for group in groups] == [(0, groups.index(group)) for group in groups]
    assert all(got <= max(buffer_bytes, *sizes) for got in read)
    assert len(read) == -(-len(groups) // batches_a_read)
