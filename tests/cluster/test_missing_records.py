"""A replica that lost a part of a closed segment: the records are fetched from the leader."""

from __future__ import annotations

from pathlib import Path

import confluent_kafka
import pytest

from pybroker.client import Admin, NewTopic
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


def segments(data: Path) -> list[Path]:
    return sorted((data / f"{TOPIC}-0").glob("*.log"))


def create(cluster: Cluster) -> None:
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(TOPIC, 1, 3, configs={"segment.bytes": "1048576", "min.insync.replicas": "2"})])
        admin.wait_for_leaders(TOPIC)


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
