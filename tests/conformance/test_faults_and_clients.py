"""Faults that a test asks for, met by other people's clients: what their own documentation says happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import aiokafka
import aiokafka.errors
import confluent_kafka
import kafka
import kafka.errors
import pytest

from pybroker.client import Admin
from pybroker.testing import Broker
from tests.conformance.conftest import AGAINST_KAFKA
from tests.support import java_oracle

pytestmark = pytest.mark.skipif(AGAINST_KAFKA, reason="Kafka has no faults on demand")

TOPIC = "orders"
VALUES = ["one", "two", "three"]
GROUP = "shop"


class Client(Protocol):
    """A client as this module uses it: one producer, or one member of a group, for each call."""

    def produce(self, address: str, values: Sequence[str], request_timeout_ms: int = 30_000) -> str:
        """Send the values, one acknowledged before the next; the name of the error that ended it, "" for none."""

    def consume(self, address: str, count: int) -> list[str]:
        """Read so many values from the topic's beginning as a member of a group, and commit."""


class Java:
    """Kafka's own."""

    def __init__(self, oracle: java_oracle.JavaOracle) -> None:
        self._oracle = oracle

    def produce(self, address: str, values: Sequence[str], request_timeout_ms: int = 30_000) -> str:
        settings = {"request.timeout.ms": str(request_timeout_ms), "delivery.timeout.ms": "60000", "linger.ms": "0"}
        requested = {"servers": address, "topic": TOPIC, "settings": settings}
        return self._oracle.query("produce", values=list(values), **requested)["error"]

    def consume(self, address: str, count: int) -> list[str]:
        settings = {"group.id": GROUP, "auto.offset.reset": "earliest", "enable.auto.commit": "false"}
        found = self._oracle.query("consume", servers=address, topic=TOPIC, count=count, settings=settings)
        assert found["error"] == ""
        return found["values"]


class Confluent:
    """confluent-kafka, which is librdkafka."""

    def produce(self, address: str, values: Sequence[str], request_timeout_ms: int = 30_000) -> str:
        settings = {"bootstrap.servers": address, "enable.idempotence": True, "socket.timeout.ms": request_timeout_ms}
        settings["request.timeout.ms"] = request_timeout_ms
        producer = confluent_kafka.Producer(settings)
        errors: list[str] = []
        for value in values:
            producer.produce(TOPIC, value, callback=lambda error, _: errors.extend([error.name()] if error else []))
            assert producer.flush(60) == 0
            if errors:
                return errors[0]
        return ""

    def consume(self, address: str, count: int) -> list[str]:
        settings = {"bootstrap.servers": address, "group.id": GROUP, "auto.offset.reset": "earliest"}
        consumer = confluent_kafka.Consumer({**settings, "enable.auto.commit": False})
        consumer.subscribe([TOPIC])
        found: list[str] = []
        while len(found) < count:
            record = consumer.poll(1)
            if record is not None and record.error() is None:
                found.append(record.value().decode())
        consumer.commit(asynchronous=False)
        consumer.close()
        return found


class KafkaPython:
    """kafka-python."""

    def produce(self, address: str, values: Sequence[str], request_timeout_ms: int = 30_000) -> str:
        producer = kafka.KafkaProducer(
            bootstrap_servers=address, enable_idempotence=True, request_timeout_ms=request_timeout_ms
        )
        try:
            for value in values:
                producer.send(TOPIC, value.encode()).get(60)
        except kafka.errors.BrokerResponseError as error:
            return error.message
        finally:
            producer.close()
        return ""

    def consume(self, address: str, count: int) -> list[str]:
        consumer = kafka.KafkaConsumer(
            TOPIC, bootstrap_servers=address, group_id=GROUP, auto_offset_reset="earliest", enable_auto_commit=False
        )
        found: list[str] = []
        while len(found) < count:
            found.extend(r.value.decode() for records in consumer.poll(1000).values() for r in records)
        consumer.commit()
        consumer.close()
        return found


class Aiokafka:
    """aiokafka."""

    def produce(self, address: str, values: Sequence[str], request_timeout_ms: int = 30_000) -> str:
        async def run() -> str:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=address, enable_idempotence=True, request_timeout_ms=request_timeout_ms
            )
            await producer.start()
            try:
                for value in values:
                    await producer.send_and_wait(TOPIC, value.encode())
            except aiokafka.errors.BrokerResponseError as error:
                return error.message
            finally:
                await producer.stop()
            return ""

        return asyncio.run(run())

    def consume(self, address: str, count: int) -> list[str]:
        async def run() -> list[str]:
            consumer = aiokafka.AIOKafkaConsumer(
                TOPIC, bootstrap_servers=address, group_id=GROUP, auto_offset_reset="earliest", enable_auto_commit=False
            )
            await consumer.start()
            try:
                found = [(await consumer.getone()).value.decode() for _ in range(count)]
                await consumer.commit()
            finally:
                await consumer.stop()
            return found

        return asyncio.run(run())


@pytest.fixture(scope="module")
def oracle() -> Iterator[java_oracle.JavaOracle]:
    """Kafka's clients, in a JVM of their own."""
    with java_oracle.running("FaultOracle") as running:
        yield running


@pytest.fixture(params=[Confluent, KafkaPython, Aiokafka, pytest.param(Java, marks=pytest.mark.java)])
def client(request: pytest.FixtureRequest) -> Client:
    """Each of the clients."""
    if request.param is Java:
        return Java(request.getfixturevalue("oracle"))
    made: Callable[[], Any] = request.param
    return made()


@pytest.fixture
def address(broker: Broker) -> str:
    """A broker that has the topic."""
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([TOPIC])
        admin.wait_for_leaders(TOPIC)
    return broker.bootstrap_servers


def test_a_producer_rides_out_errors_that_may_pass(broker: Broker, address: str, client: Client) -> None:
    faults = [broker.fail("Produce", name) for name in ("NOT_LEADER_OR_FOLLOWER", "NOT_ENOUGH_REPLICAS")]
    assert client.produce(address, VALUES) == ""
    assert [fault.fired for fault in faults] == [1, 1]
    assert client.consume(address, 3) == VALUES


def test_what_was_written_though_its_answer_was_lost_is_written_once(
    broker: Broker, address: str, client: Client
) -> None:
    lost = broker.disconnect("Produce", after=True)
    assert client.produce(address, VALUES) == ""
    assert lost.fired == 1
    assert client.consume(address, 3) == VALUES


def test_an_answer_that_never_comes_is_asked_for_again(broker: Broker, address: str, client: Client) -> None:
    silent = broker.ignore("Produce", after=True)
    assert client.produce(address, VALUES, request_timeout_ms=1500) == ""
    assert silent.fired == 1
    assert client.consume(address, 3) == VALUES


def test_an_error_that_is_final_has_its_name(broker: Broker, address: str, client: Client) -> None:
    with broker.fail("Produce", "TOPIC_AUTHORIZATION_FAILED", times=None):
        assert client.produce(address, VALUES) == "TOPIC_AUTHORIZATION_FAILED"
    assert client.produce(address, VALUES) == ""


def test_a_consumer_rides_out_errors_and_lost_connections(broker: Broker, address: str, client: Client) -> None:
    assert client.produce(address, VALUES) == ""
    faults = [
        broker.fail("FindCoordinator", "COORDINATOR_NOT_AVAILABLE"),
        broker.fail("JoinGroup", "COORDINATOR_LOAD_IN_PROGRESS"),
        broker.fail("Fetch", "NOT_LEADER_OR_FOLLOWER"),
        broker.disconnect("Fetch"),
        broker.fail("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS"),
    ]
    assert client.consume(address, 3) == VALUES
    assert [fault.fired for fault in faults] == [1] * 5


def test_a_round_trip_that_takes_longer_changes_nothing(broker: Broker, address: str, client: Client) -> None:
    with broker.delay(None, 0.05) as slow:
        assert client.produce(address, VALUES) == ""
        assert client.consume(address, 3) == VALUES
    assert slow.fired > 6


def test_older_versions_are_spoken_where_the_broker_shows_no_newer(
    broker: Broker, address: str, client: Client
) -> None:
    broker.limit_versions(Produce=(3, 7), Fetch=(4, 10), Metadata=(1, 8))
    with broker.recording() as arrived:
        assert client.produce(address, VALUES) == ""
        assert client.consume(address, 3) == VALUES
    newest = {api: max(request.version for request in arrived.of(api)) for api in ("Produce", "Fetch", "Metadata")}
    assert newest["Produce"] <= 7
    assert newest["Fetch"] <= 10
    assert newest["Metadata"] <= 8


def test_a_broker_that_stopped_and_came_back_has_its_data(broker: Broker, address: str, client: Client) -> None:
    assert client.produce(address, VALUES[:2]) == ""
    broker.restart()
    assert client.produce(address, VALUES[2:]) == ""
    assert client.consume(address, 3) == VALUES
