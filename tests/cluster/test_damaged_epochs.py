"""One flipped bit in the `leader-epoch-checkpoint` of one replica: three nodes keep every committed record."""

from __future__ import annotations

from pathlib import Path

import confluent_kafka
import pytest

from pybroker.client import Admin, NewTopic
from pybroker.testing import Cluster
from tests.support.conditions import wait_until

pytestmark = pytest.mark.process

TOPIC = "t"
BATCHES = 5
FLIPPED_BIT = 1 << 20


def append(cluster: Cluster, values: list[bytes]) -> None:
    """Append one batch for each value with acks=all; librdkafka retries where a new leader does not lead yet."""
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True})
    failures: list[confluent_kafka.KafkaError] = []
    for value in values:
        producer.produce(
            TOPIC, value, partition=0, on_delivery=lambda error, _: failures.extend([error] if error else [])
        )
        assert producer.flush(60) == 0
    assert failures == []


def flip_last_epoch(checkpoint: Path) -> None:
    lines = checkpoint.read_text().splitlines()
    epoch, offset = lines[-1].split()
    lines[-1] = f"{int(epoch) ^ FLIPPED_BIT} {offset}"
    checkpoint.write_text("\n".join(lines) + "\n")


def consume(cluster: Cluster, count: int) -> list[bytes]:
    """Read a number of values from the beginning of the partition with librdkafka."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g"})
    try:
        consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
        values: list[bytes] = []

        def has_all() -> bool:
            values.extend(message.value() for message in consumer.consume(100, 1) if message.error() is None)
            return len(values) >= count

        wait_until(has_all, within=60, what=f"{count} records")
        return values
    finally:
        consumer.close()


@pytest.mark.parametrize("role", ["leader", "follower"])
def test_a_flipped_bit_in_a_leader_epoch_checkpoint_costs_no_record(tmp_path: Path, role: str) -> None:
    values = [b"%d" % number for number in range(4 * BATCHES)]
    with Cluster(3, directory=tmp_path) as cluster:
        with Admin(cluster.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(TOPIC, 1, 3)])
            admin.wait_for_leaders(TOPIC)
        first = cluster.leader(TOPIC)
        damaged, other = (broker for broker in (1, 2, 3) if broker != first)
        append(cluster, values[:BATCHES])
        cluster.move_leader(TOPIC, 0, other)
        append(cluster, values[BATCHES : 2 * BATCHES])
        cluster.move_leader(TOPIC, 0, first)
        append(cluster, values[2 * BATCHES : 3 * BATCHES])
        cluster.wait_in_sync(TOPIC, 0)
        cluster.kill(damaged)
        flip_last_epoch(tmp_path / f"broker-{damaged}" / "data" / f"{TOPIC}-0" / "leader-epoch-checkpoint")
        cluster.start(damaged)
        cluster.wait_in_sync(TOPIC, 0)
        if role == "leader":
            cluster.move_leader(TOPIC, 0, damaged)
        append(cluster, values[3 * BATCHES :])
        cluster.wait_in_sync(TOPIC, 0)
        assert "contradicts the log; read from its batches" in cluster.log(damaged)
        for leader in (1, 2, 3):
            cluster.move_leader(TOPIC, 0, leader)
            assert consume(cluster, len(values)) == values, f"broker {leader}"
            assert "truncated from offset" not in cluster.log(leader)
