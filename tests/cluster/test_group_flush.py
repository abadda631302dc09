"""`flush=group`: what is acknowledged is on the device, for the broker and for one topic."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.batches import batch_of, read_batches
from tests.support.conditions import wait_until
from tests.support.processes import BrokerProcess
from tests.support.wire import Wire, fetch, fetched, produce, produced

pytestmark = pytest.mark.process

TOPIC = "synced"


def create(wire: Wire, **configs: str) -> None:
    """Make the topic with settings of its own."""
    entries = [{"name": name.replace("_", "."), "value": value} for name, value in configs.items()]
    topic = {"name": TOPIC, "num_partitions": 1, "replication_factor": 1, "configs": entries}
    response = wire.call("CreateTopics", 7, topics=[topic], timeout_ms=10_000)
    assert response.topics[0].error_code == 0


@pytest.mark.parametrize("where", ["broker", "topic"])
def test_acknowledged_batches_were_synced_and_are_there_after_a_kill(
    make_broker: Callable[..., BrokerProcess], where: str
) -> None:
    broker = make_broker(**({"flush": "group"} if where == "broker" else {})).start()
    with Wire(broker.bootstrap_servers) as wire:
        create(wire, **({"flush": "group"} if where == "topic" else {}))
        for number in range(20):
            response = produced(wire.query(produce(TOPIC, batch_of(b"%d" % number), acks=1 if number % 2 else -1)))
            assert (response.error_code, response.base_offset) == (0, number)
        part = fetched(wire.query(fetch(TOPIC, 0, partition_max_bytes=1 << 20)))
        assert (part.error_code, part.high_watermark) == (0, 20)
    broker.kill()
    broker.start()
    with Wire(broker.bootstrap_servers) as wire:
        part = fetched(wire.query(fetch(TOPIC, 0, partition_max_bytes=1 << 20)))
        assert part.high_watermark == 20
        values = [value for batch in read_batches(part.records) for value in batch.values]
        assert values == [b"%d" % number for number in range(20)]
        assert produced(wire.query(produce(TOPIC, batch_of(b"more")))).base_offset == 20
    assert broker.terminate() == 0
    assert "Shared fsync calls:" in broker.log


@pytest.mark.parametrize("settings", [{"flush": "group"}, {"log_flush_interval_messages": "1"}], ids=["group", "each"])
def test_acknowledged_commits_were_synced_and_are_there_after_a_kill(
    make_broker: Callable[..., BrokerProcess], settings: dict[str, str]
) -> None:
    broker = make_broker(offsets_topic_num_partitions="1", **settings).start()
    with Wire(broker.bootstrap_servers) as wire:
        create(wire)
        find_coordinator(wire)
        for number in range(20):
            assert commit(wire, number) == 0
    broker.kill()
    broker.start()
    with Wire(broker.bootstrap_servers) as wire:
        find_coordinator(wire)
        wanted = {"group_id": "g", "topics": [{"name": TOPIC, "partition_indexes": [0]}]}
        response = wire.call("OffsetFetch", 8, groups=[wanted], require_stable=False).groups[0]
        assert response.topics[0].partitions[0].committed_offset == 19
        assert commit(wire, 20) == 0
    assert broker.terminate() == 0
    assert "Shared fsync calls:" in broker.log


def find_coordinator(wire: Wire) -> None:
    def is_loaded() -> bool:
        (found,) = wire.call("FindCoordinator", 4, key_type=0, coordinator_keys=["g"]).coordinators
        response = wire.call("OffsetFetch", 8, groups=[{"group_id": "g", "topics": None}], require_stable=False)
        return not found.error_code and not response.groups[0].error_code

    wait_until(is_loaded, within=60, what="the coordinator is loaded")


def commit(wire: Wire, offset: int) -> int:
    part = {"partition_index": 0, "committed_offset": offset, "committed_leader_epoch": -1, "committed_metadata": ""}
    topics = [{"name": TOPIC, "partitions": [part]}]
    response = wire.call("OffsetCommit", 8, group_id="g", generation_id_or_member_epoch=-1, member_id="", topics=topics)
    return int(response.topics[0].partitions[0].error_code)
