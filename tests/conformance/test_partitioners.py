"""A key goes to the partition that librdkafka and Kafka's own producer choose for it."""

from __future__ import annotations

import random
from collections.abc import Callable

import confluent_kafka
import kafka.partitioner
import pytest

from pybroker.client import Admin, NewTopic, Producer
from tests.conformance.conftest import Server

PARTITIONS = 7
KEYS = [b"a", b"key", b"\xff\x00", b"with spaces and \xc3\xbc", *(random.Random(3).randbytes(n) for n in range(1, 60))]
Chosen = dict[bytes, int]


@pytest.fixture
def topic(server: Server, topic_name: str) -> str:
    with Admin(server.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic_name, PARTITIONS, -1)])
        admin.wait_for_leaders(topic_name)
    return topic_name


def by_librdkafka(server: Server, topic: str, partitioner: str) -> Chosen:
    chosen: Chosen = {}

    def delivered(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        assert error is None, error
        chosen[message.key()] = message.partition()

    producer = confluent_kafka.Producer({"bootstrap.servers": server.bootstrap_servers, "partitioner": partitioner})
    for key in KEYS:
        producer.produce(topic, b"v", key, on_delivery=delivered)
    assert producer.flush(60) == 0
    return chosen


def by_this_client(server: Server, topic: str, partitioner: str | None) -> Chosen:
    settings = {} if partitioner is None else {"partitioner": partitioner}
    with Producer(server.bootstrap_servers, settings) as producer:
        sent = {key: producer.send(topic, b"v", key) for key in KEYS}
        return {key: delivery.result(60).partition for key, delivery in sent.items()}


@pytest.mark.parametrize(
    "partitioner", ["consistent", "consistent_random", "murmur2", "murmur2_random", "fnv1a", "fnv1a_random"]
)
def test_a_key_goes_where_librdkafka_sends_it(server: Server, topic: str, partitioner: str) -> None:
    theirs = by_librdkafka(server, topic, partitioner)
    assert len(set(theirs.values())) == PARTITIONS
    assert by_this_client(server, topic, partitioner) == theirs


def test_without_a_setting_a_key_goes_where_kafkas_producer_sends_it(server: Server, topic: str) -> None:
    """kafka-python's murmur2 is a port of Java's."""
    murmur2: Callable[[bytes], int] = kafka.partitioner.murmur2
    theirs = {key: (murmur2(key) & 0x7FFFFFFF) % PARTITIONS for key in KEYS}
    assert by_this_client(server, topic, None) == theirs
