"""Replicas that lost acknowledged records: another in-sync replica leads, and the records are fetched from it."""

from __future__ import annotations

from pathlib import Path

import confluent_kafka
import pytest

from pybroker.client import Admin, NewTopic
from pybroker.client.administration.quorum import FeatureUpdate
from pybroker.testing import Cluster
from tests.support.conditions import wait_until

pytestmark = pytest.mark.process

TOPIC = "t"
BROKERS = (1, 2, 3)
VALUE = bytes(60_000)


def values(numbers: range) -> list[bytes]:
    return [b"%04d" % number + VALUE for number in numbers]


def append(cluster: Cluster, numbers: range) -> None:
    """Append a batch for each value with acks=all."""
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers, "enable.idempotence": True})
    failures: list[confluent_kafka.KafkaError] = []
    for value in values(numbers):
        producer.produce(
            TOPIC, value, partition=0, on_delivery=lambda error, _: failures.extend([error] if error else [])
        )
        assert producer.flush(60) == 0
    assert failures == []


def consume(cluster: Cluster, count: int) -> list[bytes]:
    """Read values from the beginning of the partition with librdkafka."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g"})
    try:
        consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
        found: list[bytes] = []

        def has_all() -> bool:
            found.extend(message.value() for message in consumer.consume(100, 1) if message.error() is None)
            return len(found) >= count

        wait_until(has_all, within=60, what=f"{count} records")
        return found
    finally:
        consumer.close()


def data_of(directory: Path, broker: int) -> Path:
    return directory / f"broker-{broker}" / "data"


def wait_checkpointed(data: Path, high_watermark: int) -> None:
    """Wait until `replication-offset-checkpoint` has this high watermark of the partition."""
    path = data / "replication-offset-checkpoint"
    line = f"{TOPIC} 0 {high_watermark}"
    wait_until(lambda: path.exists() and line in path.read_text().splitlines(), within=60, what=line)


def segments(data: Path) -> list[Path]:
    return sorted((data / f"{TOPIC}-0").glob("*.log"))


def create(cluster: Cluster) -> None:
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(TOPIC, 1, 3, configs={"segment.bytes": "1048576", "min.insync.replicas": "2"})])
        admin.wait_for_leaders(TOPIC)


@pytest.mark.parametrize(
    ("role", "returns", "has_eligible_replicas"),
    [("leader", "first", False), ("leader", "last", False), ("follower", "last", False), ("leader", "last", True)],
)
def test_a_replica_that_lost_its_end_in_a_crash_of_all_does_not_lead(
    tmp_path: Path, role: str, returns: str, has_eligible_replicas: bool
) -> None:
    """Two nodes are a quorum: the damaged one is among them, or starts when they serve."""
    numbers = range(10)
    settings = {"replica.high.watermark.checkpoint.interval.ms": "100"}
    with Cluster(3, directory=tmp_path, properties=settings) as cluster:
        if has_eligible_replicas:
            with Admin(cluster.bootstrap_servers) as admin:
                admin.update_features({"eligible.leader.replicas.version": FeatureUpdate(1)})
        create(cluster)
        append(cluster, numbers)
        cluster.wait_in_sync(TOPIC)
        leader = cluster.leader(TOPIC)
        damaged = leader if role == "leader" else next(one for one in BROKERS if one != leader)
        data = data_of(tmp_path, damaged)
        wait_checkpointed(data, numbers.stop)
        for broker in BROKERS:
            cluster.kill(broker)
        [log] = segments(data)
        with log.open("r+b") as file:
            file.truncate(log.stat().st_size // 2)
        whole = [one for one in BROKERS if one != damaged]
        first = [damaged, whole[0]] if returns == "first" else whole
        cluster._local.start_nodes(first)
        [last] = set(BROKERS).difference(first)
        cluster.start(last)
        assert consume(cluster, numbers.stop) == values(numbers)
        cluster.wait_in_sync(TOPIC)
        cluster.move_leader(TOPIC, 0, damaged)
        append(cluster, range(numbers.stop, 20))
        assert consume(cluster, 20) == values(range(20))
        assert f"1 replicas are missing records ({TOPIC}-0)" in cluster.log(damaged)


def test_a_replica_with_a_hole_fetches_the_missing_records(tmp_path: Path) -> None:
    numbers = range(40)
    with Cluster(3, directory=tmp_path) as cluster:
        create(cluster)
        append(cluster, numbers)
        cluster.wait_in_sync(TOPIC)
        damaged = next(one for one in BROKERS if one != cluster.leader(TOPIC))
        cluster.stop(damaged)
        first, second, *_ = segments(data_of(tmp_path, damaged))
        batch = first.stat().st_size // int(second.stem)
        with first.open("r+b") as file:
            file.truncate((int(second.stem) - 3) * batch)
        cluster.start(damaged)
        cluster.wait_in_sync(TOPIC)
        cluster.move_leader(TOPIC, 0, damaged)
        assert consume(cluster, numbers.stop) == values(numbers)
        line = f"truncated from offset {numbers.stop} to {int(second.stem) - 3}, where records are missing"
        assert cluster.log(damaged).count(line) == 1


def test_replicas_that_have_all_lost_their_ends_lead_with_what_is_left(tmp_path: Path) -> None:
    """No whole replica is left: the partition is available, and each node reports what is missing."""
    numbers = range(10)
    settings = {"replica.high.watermark.checkpoint.interval.ms": "100"}
    with Cluster(3, directory=tmp_path, properties=settings) as cluster:
        create(cluster)
        append(cluster, numbers)
        cluster.wait_in_sync(TOPIC)
        for broker in BROKERS:
            wait_checkpointed(data_of(tmp_path, broker), numbers.stop)
        for broker in BROKERS:
            cluster.kill(broker)
        for broker in BROKERS:
            [log] = segments(data_of(tmp_path, broker))
            with log.open("r+b") as file:
                file.truncate(log.stat().st_size // 2)
        cluster._local.start_nodes(list(BROKERS))
        cluster.wait_in_sync(TOPIC)
        append(cluster, range(100, 105))
        assert consume(cluster, 10) == values(range(5)) + values(range(100, 105))
        assert all(f"1 replicas are missing records ({TOPIC}-0)" in cluster.log(one) for one in BROKERS)
