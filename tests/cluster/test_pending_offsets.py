"""A coordinator of groups dies with offsets of open transactions: the next one knows which, and ends them."""

from __future__ import annotations

from collections.abc import Iterator

import confluent_kafka
import pytest

from pybroker.client import Admin, NewTopic, TopicPartition
from pybroker.testing import Cluster
from tests.conformance.classic_members import OK
from tests.conformance.transactions import UNSTABLE_OFFSET_COMMIT
from tests.support.conditions import wait_until
from tests.support.wire import Wire

pytestmark = pytest.mark.process

OFFSETS_TOPIC, TOPIC = "__consumer_offsets", "read"
NOT_YET = frozenset({14, 15, 16})
"""COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    properties = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
    with Cluster(brokers=3, properties=properties) as running, Admin(running.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(TOPIC, 1, 3)])
        admin.wait_for_leaders(TOPIC)
        yield running


def stable_offset(cluster: Cluster, group: str) -> tuple[int, int]:
    """The offset of a group and its error, as who asks for stable ones gets them; asked until a coordinator answers."""

    def responded() -> tuple[int, int] | None:
        try:
            wire = Wire(cluster.address(cluster.leader(OFFSETS_TOPIC, 0)))
        except ConnectionRefusedError:
            return None  # Who was asked for the leader has not seen yet that it is dead.
        with wire:
            requested = {"group_id": group, "topics": [{"name": TOPIC, "partition_indexes": [0]}]}
            (found,) = wire.call("OffsetFetch", 8, groups=[requested], require_stable=True).groups
            if found.error_code in NOT_YET:
                return None
            (partition,) = found.topics[0].partitions
            return partition.committed_offset, partition.error_code

    found = wait_until(responded, within=60, what=f"a coordinator answers for {group}")
    assert found is not None
    return found


def offset_of_librdkafka(cluster: Cluster, group: str) -> int:
    """The offset that librdkafka resumes at, which fetches stable ones; OFFSET_INVALID where the group has none."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group})
    try:
        (found,) = consumer.committed([confluent_kafka.TopicPartition(TOPIC, 0)], 60)
    finally:
        consumer.close()
    assert found.error is None
    return int(found.offset)


def test_the_next_coordinator_has_what_is_pending(cluster: Cluster) -> None:
    settings = {"bootstrap.servers": cluster.bootstrap_servers}
    producers = {}
    for name in ("committed", "aborted"):
        producer = producers[name] = confluent_kafka.Producer({**settings, "transactional.id": name})
        producer.init_transactions(60)
        producer.begin_transaction()
        consumer = confluent_kafka.Consumer({**settings, "group.id": name})
        offset = confluent_kafka.TopicPartition(TOPIC, 0, 7)
        producer.send_offsets_to_transaction([offset], consumer.consumer_group_metadata(), 60)
        consumer.close()
    cluster.kill(cluster.leader(OFFSETS_TOPIC, 0))
    for name in producers:
        assert stable_offset(cluster, name) == (-1, UNSTABLE_OFFSET_COMMIT)
    producers["committed"].commit_transaction(60)
    producers["aborted"].abort_transaction(60)
    # The answer to the producer comes before the markers.
    wait_until(lambda: stable_offset(cluster, "committed") == (7, OK), within=60, what="it is committed")
    wait_until(lambda: stable_offset(cluster, "aborted") == (-1, OK), within=60, what="it is aborted")
    with Admin(cluster.bootstrap_servers) as admin:
        assert admin.list_group_offsets("committed")[TopicPartition(TOPIC, 0)].offset == 7
        assert admin.list_group_offsets("aborted") == {}
    assert offset_of_librdkafka(cluster, "committed") == 7
    assert offset_of_librdkafka(cluster, "aborted") == confluent_kafka.OFFSET_INVALID
