"""kill -9 under load, again and again: what was acknowledged is there, in order, and once for idempotent producers.

A killed process loses nothing that it has written: the page cache is the kernel's. What is doubted here is the torn
tail of a log, its indexes, the producers' state and the metadata log.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable

import confluent_kafka
import confluent_kafka.admin
import pytest

from tests.support.batches import batch_of
from tests.support.conditions import wait_until
from tests.support.numbered_load import PARTITIONS, Load, read_all
from tests.support.processes import BrokerProcess
from tests.support.wire import Wire, produce, produced

ROUNDS = int(os.environ.get("PYBROKER_KILL_ROUNDS", "20"))
ACKNOWLEDGED_PER_ROUND = 20_000

pytestmark = [pytest.mark.process, pytest.mark.timeout(400 + 30 * max(0, ROUNDS - 20))]


@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "plain"])
def test_what_was_acknowledged_survives_kills(make_broker: Callable[..., BrokerProcess], idempotent: bool) -> None:
    # Small segments, so that kills fall into rolls as well.
    broker = make_broker(log_segment_bytes=str(1 << 20), log_index_interval_bytes="1024").start()
    topic = "load"
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    admin.create_topics([confluent_kafka.admin.NewTopic(topic, PARTITIONS, 1)])[topic].result(60)

    load = Load(broker.bootstrap_servers, topic, idempotent=idempotent)
    try:
        for _ in range(ROUNDS):
            goal = len(load.acknowledged) + ACKNOWLEDGED_PER_ROUND
            wait_until(
                lambda goal=goal: len(load.acknowledged) >= goal or load.failures,  # type: ignore[misc]
                within=60,
                what=f"{ACKNOWLEDGED_PER_ROUND} records acknowledged since the restart",
            )
            assert load.failures == []
            broker.kill()
            broker.start()
    finally:
        load.finish()
    assert load.failures == []

    stored = defaultdict(list)
    for partition, offset, number in read_all(broker.bootstrap_servers, topic):
        stored[partition].append(number)
        acknowledged = load.acknowledged.pop((partition, offset), number)
        assert acknowledged == number, f"offset {offset} was acknowledged for {acknowledged} and holds {number}"
    assert not load.acknowledged, f"{len(load.acknowledged)} acknowledged records are gone"
    for partition, numbers in stored.items():
        every = list(range(partition, load.sent, PARTITIONS))
        if idempotent:
            assert numbers == every, "each number once, in order"
        else:
            assert list(dict.fromkeys(numbers)) == every, "each number at least once, first seen in order"


def test_topics_that_were_created_and_deleted_survive_kills(make_broker: Callable[..., BrokerProcess]) -> None:
    broker = make_broker().start()
    expected: dict[str, object] = {}
    for round_number in range(5):
        with Wire(broker.bootstrap_servers) as wire:
            for number in range(20):
                name = f"topic-{round_number}-{number}"
                made = wire.call(
                    "CreateTopics", 7, topics=[{"name": name, "num_partitions": 2, "replication_factor": 1}]
                )
                assert made.topics[0].error_code == 0
                expected[name] = made.topics[0].topic_id
            removed = f"topic-{round_number}-7"
            assert wire.call("DeleteTopics", 6, topics=[{"name": removed}]).responses[0].error_code == 0
            del expected[removed]
        broker.kill()
        broker.start()
        with Wire(broker.bootstrap_servers) as wire:
            shown = {topic.name: topic.topic_id for topic in wire.call("Metadata", 12, topics=None).topics}
            assert shown == expected
            for name in list(expected)[-3:]:
                assert produced(wire.query(produce(name, batch_of(b"usable"), partition=1))).error_code == 0
    directories = {path.name.rsplit("-", 1)[0] for path in broker.directory.glob("topic-*-[01]") if path.is_dir()}
    assert directories == set(expected)
