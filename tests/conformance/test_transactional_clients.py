"""Transactional clients are refused at once, in words, by a broker without transactions: no client waits for them.

Kafka has transactions, so these claims are this broker's own
(`docs/adr/0022-transactional-ids-are-refused-for-good.md`).
"""

from __future__ import annotations

from collections.abc import Iterator

import aiokafka
import aiokafka.errors
import confluent_kafka
import kafka
import kafka.errors
import pytest

from tests.conformance.conftest import AGAINST_KAFKA, Server, Topic
from tests.support import java_oracle
from tests.support.batches import TRANSACTIONAL, batch_of
from tests.support.wire import Wire, produce, produced

pytestmark = pytest.mark.skipif(AGAINST_KAFKA, reason="Kafka has transactions")

TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
INVALID_TXN_STATE = 48
INVALID_REQUEST = 42
TRANSACTION = 1
WORDS = "This broker has no transactions: use an idempotent producer, without transactional.id"
# Far longer than a refusal takes, and far shorter than the time for which clients ask again.
PATIENCE_SECONDS = 30


@pytest.mark.parametrize("version", range(1, 7))
def test_no_coordinator_of_a_transaction_is_found_and_the_words_say_why(wire: Wire, version: int) -> None:
    named = {"key": "t"} if version < 4 else {"coordinator_keys": ["t", "u"]}
    answer = wire.call("FindCoordinator", version, key_type=TRANSACTION, **named)
    for found in [answer] if version < 4 else answer.coordinators:
        assert (found.error_code, found.node_id) == (TRANSACTIONAL_ID_AUTHORIZATION_FAILED, -1)
        assert found.error_message == WORDS
    assert version < 4 or [found.key for found in answer.coordinators] == ["t", "u"]


@pytest.mark.parametrize("version", range(6))
def test_no_producer_id_is_given_for_a_transactional_id(wire: Wire, version: int) -> None:
    given = wire.call("InitProducerId", version, transactional_id="t", transaction_timeout_ms=60_000)
    assert (given.error_code, given.producer_id) == (TRANSACTIONAL_ID_AUTHORIZATION_FAILED, -1)
    empty = wire.call("InitProducerId", version, transactional_id="", transaction_timeout_ms=60_000)
    assert empty.error_code == INVALID_REQUEST


def test_the_refusal_of_a_transactional_batch_names_transactions(wire: Wire, topic: Topic) -> None:
    given = wire.call("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=60_000)
    batch = batch_of(b"a", attributes=TRANSACTIONAL, producer_id=given.producer_id, producer_epoch=0, base_sequence=0)
    answer = produced(wire.ask(produce(topic.name, batch)))
    assert answer.error_code == INVALID_TXN_STATE
    assert answer.error_message == f"{topic.name}-0: the batch is transactional, and this broker has no transactions"


def test_confluent_kafka_is_refused_for_good(server: Server) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": server.bootstrap_servers, "transactional.id": "t"})
    with pytest.raises(confluent_kafka.KafkaException) as refused:
        producer.init_transactions(PATIENCE_SECONDS)
    error = refused.value.args[0]
    assert (error.code(), error.fatal(), error.retriable()) == (TRANSACTIONAL_ID_AUTHORIZATION_FAILED, True, False)
    assert WORDS in error.str()


def test_kafka_python_is_refused_for_good(server: Server) -> None:
    producer = kafka.KafkaProducer(
        bootstrap_servers=server.bootstrap_servers, transactional_id="t", max_block_ms=PATIENCE_SECONDS * 1000
    )
    try:
        with pytest.raises(kafka.errors.TransactionalIdAuthorizationFailedError):
            producer.init_transactions()
    finally:
        producer.close(timeout=0)


async def test_aiokafka_is_refused_for_good(server: Server) -> None:
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=server.bootstrap_servers, transactional_id="t")
    try:
        with pytest.raises(aiokafka.errors.TransactionalIdAuthorizationFailed):
            await producer.start()
    finally:
        await producer.stop()


@pytest.fixture(scope="module")
def oracle() -> Iterator[java_oracle.JavaOracle]:
    with java_oracle.running("TransactionOracle") as running:
        yield running


@pytest.mark.java
def test_kafkas_own_producer_and_admin_are_refused_for_good(oracle: java_oracle.JavaOracle, server: Server) -> None:
    for what in ("init", "fence"):
        refused = oracle.ask(what, servers=server.bootstrap_servers, id="t")
        assert refused["class"] == "TransactionalIdAuthorizationException", (what, refused)
