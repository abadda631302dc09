"""Transactional clients of others: each commits, aborts and fences, and readers see what was committed alone."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import aiokafka
import aiokafka.errors
import confluent_kafka
import kafka
import kafka.errors
import pytest

from tests.conformance.conftest import Server, Topic
from tests.support import java_oracle
from tests.support.franz import franz_program
from tests.support.wire import Wire

INVALID_REQUEST = 42
TRANSACTION = 1
# Far longer than it takes, and far shorter than the time for which clients ask again.
PATIENCE_SECONDS = 60


def committed(server: Server, topic: Topic, count: int) -> list[bytes]:
    """The values that a reader of committed records sees in partition 0, in order."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": server.bootstrap_servers,
            "group.id": f"readers of {topic.name}",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic.name, 0, confluent_kafka.OFFSET_BEGINNING)])
    values: list[bytes] = []
    try:
        while True:
            message = consumer.poll(PATIENCE_SECONDS)
            assert message is not None, values
            if message.error() is None:
                values.append(message.value())
            elif len(values) >= count:
                return values
    finally:
        consumer.close()


@pytest.mark.parametrize("version", range(1, 7))
def test_the_coordinator_of_a_transaction_is_found(wire: Wire, version: int) -> None:
    named = {"key": "t"} if version < 4 else {"coordinator_keys": ["t", "u"]}
    response = wire.call("FindCoordinator", version, key_type=TRANSACTION, **named)
    for found in [response] if version < 4 else response.coordinators:
        assert (found.error_code, found.node_id >= 0, found.host != "") == (0, True, True)
    assert version < 4 or [found.key for found in response.coordinators] == ["t", "u"]


@pytest.mark.parametrize("version", range(6))
def test_an_empty_transactional_id_is_nobodys(wire: Wire, version: int) -> None:
    empty = wire.call("InitProducerId", version, transactional_id="", transaction_timeout_ms=60_000)
    assert empty.error_code == INVALID_REQUEST


def test_confluent_kafka(server: Server, topic: Topic) -> None:
    settings = {"bootstrap.servers": server.bootstrap_servers, "transactional.id": f"id of {topic.name}"}
    producer = confluent_kafka.Producer(settings)
    producer.init_transactions(PATIENCE_SECONDS)
    for value, commits in ((b"a", True), (b"b", False), (b"c", True)):
        producer.begin_transaction()
        producer.produce(topic.name, value, partition=0)
        if commits:
            producer.commit_transaction(PATIENCE_SECONDS)
        else:
            producer.flush(PATIENCE_SECONDS)
            producer.abort_transaction(PATIENCE_SECONDS)
    assert committed(server, topic, 2) == [b"a", b"c"]
    producer.begin_transaction()
    producer.produce(topic.name, b"open", partition=0)
    producer.flush(PATIENCE_SECONDS)
    newer = confluent_kafka.Producer(settings)
    newer.init_transactions(PATIENCE_SECONDS)
    with pytest.raises(confluent_kafka.KafkaException) as fenced:
        producer.commit_transaction(PATIENCE_SECONDS)
    assert fenced.value.args[0].fatal()
    newer.begin_transaction()
    newer.produce(topic.name, b"d", partition=0)
    newer.commit_transaction(PATIENCE_SECONDS)
    assert committed(server, topic, 3) == [b"a", b"c", b"d"]


def test_kafka_python(server: Server, topic: Topic) -> None:
    producer = kafka.KafkaProducer(
        bootstrap_servers=server.bootstrap_servers,
        transactional_id=f"id of {topic.name}",
        max_block_ms=PATIENCE_SECONDS * 1000,
    )
    try:
        producer.init_transactions()
        for value, commits in ((b"a", True), (b"b", False), (b"c", True)):
            producer.begin_transaction()
            producer.send(topic.name, value, partition=0).get(PATIENCE_SECONDS)
            if commits:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    finally:
        producer.close(timeout=PATIENCE_SECONDS)
    assert committed(server, topic, 2) == [b"a", b"c"]


async def test_aiokafka(server: Server, topic: Topic) -> None:
    settings = {"bootstrap_servers": server.bootstrap_servers, "transactional_id": f"id of {topic.name}"}
    async with aiokafka.AIOKafkaProducer(**settings) as producer:
        async with producer.transaction():
            await producer.send_and_wait(topic.name, b"a", partition=0)
        await producer.begin_transaction()
        await producer.send_and_wait(topic.name, b"b", partition=0)
        await producer.abort_transaction()
        async with aiokafka.AIOKafkaProducer(**settings) as newer:
            async with newer.transaction():
                await newer.send_and_wait(topic.name, b"c", partition=0)
            await producer.begin_transaction()
            with pytest.raises(aiokafka.errors.ProducerFenced):
                await producer.send_and_wait(topic.name, b"d", partition=0)
    assert committed(server, topic, 2) == [b"a", b"c"]


@pytest.fixture(scope="module")
def oracle() -> Iterator[java_oracle.JavaOracle]:
    with java_oracle.running("TransactionOracle") as running:
        yield running


@pytest.mark.java
def test_kafkas_own_producer_and_admin(oracle: java_oracle.JavaOracle, server: Server, topic: Topic) -> None:
    for what in ("init", "fence", "init"):
        tried = oracle.query(what, servers=server.bootstrap_servers, id=f"id of {topic.name}")
        assert (tried["class"], tried["message"]) == ("", ""), what


@pytest.mark.java
def test_kafkas_own_producer_with_records(oracle: java_oracle.JavaOracle, server: Server, topic: Topic) -> None:
    named = {"id": f"id of {topic.name}", "topic": topic.name}
    tried = oracle.query("records", servers=server.bootstrap_servers, **named)
    assert tried["class"] == "ProducerFencedException", tried
    assert committed(server, topic, 3) == [b"a", b"c", b"d"]


def test_franz_go(server: Server, topic: Topic) -> None:
    words = [franz_program("transactions"), server.bootstrap_servers, topic.name, f"id of {topic.name}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=4 * PATIENCE_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    assert re.match(r"(PRODUCER_FENCED|INVALID_PRODUCER_EPOCH): ", done.stdout), done.stdout
    assert committed(server, topic, 3) == [b"a", b"c", b"d"]
