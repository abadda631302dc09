"""The client's transactions: what is read of them, what they refuse, and what a program does about each failure."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import confluent_kafka
import pyarrow as pa
import pytest

from pybroker.client import (
    AsyncConsumer,
    AsyncProducer,
    Consumer,
    GroupMetadata,
    Producer,
    ProducerFencedError,
    TopicPartition,
    TransactionAbortableError,
    TransactionAbortedError,
    TransactionStateError,
)
from pybroker.client.errors import RecordError, SettingError, TransactionFatalError
from pybroker.protocol.errors import ErrorCode
from tests.conformance.conftest import Server, Topic, serves
from tests.support import librdkafka_reader
from tests.support.conditions import wait_until

END_TXN = 26
LONG_MS = 60_000
EARLIEST = {"auto.offset.reset": "earliest", "enable.auto.commit": False}

Open = Callable[..., Producer]


@pytest.fixture(autouse=True)
def with_transactions(server: Server) -> None:
    if not serves(server, END_TXN):
        pytest.skip("the broker has no transaction coordinator yet")


@pytest.fixture
def two(make_topic: Callable[[int], str]) -> str:
    """A topic of two partitions."""
    return make_topic(2)


@pytest.fixture
def producer(server: Server, topic_name: str) -> Iterator[Producer]:
    """A producer that has its identity."""
    with Producer(server.bootstrap_servers, {"transactional.id": topic_name, "linger.ms": 0}) as opened:
        opened.init_transactions()
        yield opened


def read(server: Server, topic: str, partitions: int = 2, *, isolation: str = "read_committed") -> list[bytes]:
    """Everything that a consumer may read of a topic, sorted; librdkafka reads the same in each partition."""
    parts = [TopicPartition(topic, index) for index in range(partitions)]
    found: list[list[bytes]] = [[] for _ in parts]
    with Consumer(server.bootstrap_servers, {**EARLIEST, "isolation.level": isolation}) as consumer:
        ends = consumer.end_offsets(*parts)
        consumer.assign(parts)
        while any(consumer.position(part) < ends[part] for part in parts):
            for record in consumer.poll(1):
                found[record.partition].append(record.value or b"")
    theirs = librdkafka_reader.values(server.bootstrap_servers, topic, partitions=partitions, isolation=isolation)
    assert found == theirs
    return sorted(value for values in theirs for value in values)


def lose(producer: Producer, topic: str) -> None:
    """Send ten records, and fail."""
    for number in range(10):
        producer.send(topic, b"lost %d" % number, partition=number % 2)
    producer.flush()
    raise ZeroDivisionError


async def lose_over_asyncio(producer: AsyncProducer, topic: str) -> None:
    """Send a record in a transaction, and be cancelled."""
    async with producer.transaction():
        await producer.send(topic, b"lost", partition=0)
        raise asyncio.CancelledError


def test_a_transaction_is_read_all_together_or_not_at_all(server: Server, two: str, producer: Producer) -> None:
    with producer.transaction():
        for number in range(10):
            producer.send(two, b"kept %d" % number, partition=number % 2)
    with pytest.raises(ZeroDivisionError), producer.transaction():
        lose(producer, two)
    with producer.transaction():
        producer.send(two, b"last", partition=0)
    kept = [b"kept %d" % number for number in range(10)]
    assert read(server, two) == sorted([*kept, b"last"])
    lost = [b"lost %d" % number for number in range(10)]
    assert read(server, two, isolation="read_uncommitted") == sorted([*kept, *lost, b"last"])


def test_another_client_reads_what_was_committed(server: Server, two: str, producer: Producer) -> None:
    for number in range(5):
        producer.begin_transaction()
        producer.send(two, b"%d" % number, partition=0)
        (producer.commit_transaction if number % 2 else producer.abort_transaction)()
    settings = {"bootstrap.servers": server.bootstrap_servers, "group.id": two, "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer(settings)
    consumer.assign([confluent_kafka.TopicPartition(two, 0, 0)])
    assert [m.value() for m in consumer.consume(2, timeout=60)] == [b"1", b"3"]
    consumer.close()


def test_an_open_transaction_is_not_read_and_ends_what_committed_readers_see(
    server: Server, two: str, producer: Producer
) -> None:
    producer.begin_transaction()
    producer.send(two, b"open", partition=0).result()
    with Producer(server.bootstrap_servers) as other:
        other.send(two, b"behind", partition=0).result()
    with Consumer(server.bootstrap_servers, {**EARLIEST, "isolation.level": "read_committed"}) as consumer:
        assert consumer.end_offsets(TopicPartition(two, 0)) == {TopicPartition(two, 0): 0}
    assert read(server, two) == []
    producer.commit_transaction()
    assert read(server, two) == [b"behind", b"open"]


def _has_read(consumer: Consumer) -> bool:
    return bool(consumer.poll(1, 1))


def test_what_is_open_is_no_lag_of_a_committed_reader(server: Server, two: str, producer: Producer) -> None:
    with producer.transaction():
        producer.send(two, b"committed", partition=0)
    producer.begin_transaction()
    producer.send(two, b"open", partition=0).result()
    lags = {}
    for isolation in ("read_committed", "read_uncommitted"):
        with Consumer(server.bootstrap_servers, {**EARLIEST, "isolation.level": isolation}) as consumer:
            consumer.assign([TopicPartition(two, 0)])
            wait_until(partial(_has_read, consumer), within=60, what="a record")
            lags[isolation] = consumer.metrics()["records-lag-max"]
    producer.abort_transaction()
    assert lags == {"read_committed": 0, "read_uncommitted": 0}


def test_columns_are_sent_in_transactions(server: Server, two: str, producer: Producer) -> None:
    batch = pa.record_batch({"value": [b"%03d" % number for number in range(500)]})
    with producer.transaction():
        assert len(producer.send_columns(batch, topic=two)) == 500
    producer.begin_transaction()
    producer.send_columns(batch, topic=two)
    producer.abort_transaction()
    assert read(server, two) == [b"%03d" % number for number in range(500)]
    with pytest.raises(TransactionStateError, match="call begin_transaction"):
        producer.send_columns(batch, topic=two)


def test_records_and_calls_out_of_their_order_are_refused(server: Server, two: str) -> None:
    with Producer(server.bootstrap_servers, {"transactional.id": two}) as producer:
        with pytest.raises(TransactionStateError, match="init_transactions"):
            producer.begin_transaction()
        with pytest.raises(TransactionStateError, match="init_transactions"):
            producer.send(two, b"x")
        producer.init_transactions()
        for refused in (
            producer.commit_transaction,
            producer.abort_transaction,
            producer.init_transactions,
            lambda: producer.send(two, b"x"),
            lambda: producer.send_offsets_to_transaction({TopicPartition(two, 0): 1}, "g"),
        ):
            with pytest.raises(TransactionStateError, match=two):
                refused()
        producer.begin_transaction()
        with pytest.raises(TransactionStateError, match="IN_TRANSACTION"):
            producer.begin_transaction()
        producer.send(two, b"x")
        producer.commit_transaction()
    with Producer(server.bootstrap_servers) as plain, pytest.raises(SettingError, match=r"transactional\.id"):
        plain.init_transactions()
    assert read(server, two) == [b"x"]


def test_a_transaction_of_nothing_ends_without_the_coordinator(producer: Producer) -> None:
    before = producer.producer_id()
    for commits in (True, False):
        producer.begin_transaction()
        (producer.commit_transaction if commits else producer.abort_transaction)()
    assert producer.producer_id() == before


def test_a_former_producer_is_fenced_and_what_it_sends_is_never_read(
    server: Server, two: str, producer: Producer
) -> None:
    producer.begin_transaction()
    producer.send(two, b"before", partition=0).result()
    with Producer(server.bootstrap_servers, {"transactional.id": two}) as successor:
        successor.init_transactions()
        delivery = producer.send(two, b"zombie", partition=1)
        with pytest.raises((TransactionAbortableError, ProducerFencedError)):
            producer.commit_transaction()
        with pytest.raises(ProducerFencedError, match=r"another producer has this transactional\.id"):
            producer.abort_transaction()
        assert delivery.done()
        with pytest.raises(ProducerFencedError):
            producer.begin_transaction()
        with pytest.raises(TransactionFatalError):
            producer.send(two, b"more")
        with successor.transaction():
            successor.send(two, b"after", partition=1)
    assert read(server, two) == [b"after"]


def test_a_fenced_producer_leaves_its_block_as_fenced(server: Server, two: str, producer: Producer) -> None:
    with Producer(server.bootstrap_servers, {"transactional.id": two}) as successor:
        successor.init_transactions()
        with pytest.raises(ProducerFencedError), producer.transaction():
            producer.send(two, b"zombie")


def test_a_refused_batch_fails_its_transaction_and_the_next_one_succeeds(
    server: Server, create: Callable[..., Topic], topic_name: str, producer: Producer
) -> None:
    create(topic_name, **{"max.message.bytes": "1000"})
    with producer.transaction():
        producer.send(topic_name, b"first")
    producer.begin_transaction()
    small = producer.send(topic_name, b"small")
    small.result()
    large = producer.send(topic_name, b"x" * 5000)
    with pytest.raises(TransactionAbortableError, match="MESSAGE_TOO_LARGE") as failed:
        producer.commit_transaction()
    assert failed.value.code == ErrorCode.MESSAGE_TOO_LARGE
    with pytest.raises(TransactionAbortableError):
        producer.send(topic_name, b"more")
    assert large.done()
    producer.abort_transaction()
    for number in range(3):
        with producer.transaction():
            producer.send(topic_name, b"again %d" % number)
    assert read(server, topic_name, 1) == [b"again 0", b"again 1", b"again 2", b"first"]


def test_records_that_were_not_sent_fail_with_the_abort(server: Server, two: str) -> None:
    properties = {"transactional.id": two, "linger.ms": 20_000}
    with Producer(server.bootstrap_servers, properties) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        unsent = producer.send(two, b"unsent")
        producer.abort_transaction()
        with pytest.raises(TransactionAbortedError):
            unsent.result()
        producer.raise_failure()
        with producer.transaction():
            producer.send(two, b"sent")
    assert read(server, two) == [b"sent"]


def test_a_record_too_large_for_any_request_is_refused_alone(server: Server, two: str, producer: Producer) -> None:
    with producer.transaction():
        with pytest.raises(RecordError):
            producer.send(two, b"x" * 2_000_000)
        producer.send(two, b"kept")
    assert read(server, two) == [b"kept"]


def test_offsets_are_committed_with_the_transaction_or_not_at_all(
    server: Server, two: str, group: str, producer: Producer
) -> None:
    with Producer(server.bootstrap_servers) as source:
        for number in range(10):
            source.send(two, b"%d" % number, partition=0)
    properties = {**EARLIEST, "group.id": group, "isolation.level": "read_committed"}
    part = TopicPartition(two, 0)
    with Consumer(server.bootstrap_servers, properties) as consumer:
        consumer.subscribe([two])
        wait_until(lambda: bool(consumer.poll(1)) and consumer.position(part) == 10, within=60, what="10 records")
        for commits in (False, True):
            producer.begin_transaction()
            producer.send(two, b"out", partition=1)
            producer.send_offsets_to_transaction(consumer)
            (producer.commit_transaction if commits else producer.abort_transaction)()
            found = consumer.committed(part)[part]
            assert (found.offset if found else None) == (10 if commits else None)
        with producer.transaction():
            producer.send_offsets_to_transaction({part: 7}, group=consumer.consumed().group)
        assert [found.offset for found in consumer.committed(part).values() if found] == [7]
    assert read(server, two) == sorted([b"%d" % number for number in range(10)] + [b"out"])


def test_a_former_member_commits_nothing(server: Server, two: str, group: str, producer: Producer) -> None:
    part = TopicPartition(two, 0)
    with Consumer(server.bootstrap_servers, {**EARLIEST, "group.id": group}) as consumer:
        consumer.subscribe([two])
        wait_until(lambda: bool(consumer.poll(0.2) or consumer.assignment()), within=60, what="an assignment")
        now = consumer.consumed().group
        for former in (replace(now, generation=now.generation - 1), replace(now, member_id="nobody")):
            producer.begin_transaction()
            producer.send(two, b"lost")
            with pytest.raises(TransactionAbortableError) as refused:
                producer.send_offsets_to_transaction({part: 3}, former)
            assert refused.value.code in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID)
            with pytest.raises(TransactionAbortableError):
                producer.commit_transaction()
            producer.abort_transaction()
        with producer.transaction():
            producer.send_offsets_to_transaction({part: 4}, now)
        assert [found.offset for found in consumer.committed(part).values() if found] == [4]
    assert read(server, two) == []


def test_a_consumer_that_commits_by_itself_is_refused(server: Server, two: str, group: str, producer: Producer) -> None:
    with Consumer(server.bootstrap_servers, {"group.id": group}) as consumer, producer.transaction():
        with pytest.raises(SettingError, match=r"enable\.auto\.commit"):
            producer.send_offsets_to_transaction(consumer)
        producer.send_offsets_to_transaction({TopicPartition(two, 0): 1}, GroupMetadata(group))


KILLED = """
import sys
from pybroker.client import Producer
producer = Producer(sys.argv[1], {"transactional.id": sys.argv[2]})
producer.init_transactions()
producer.begin_transaction()
producer.send(sys.argv[2], b"committed", partition=0)
producer.commit_transaction()
producer.begin_transaction()
producer.send(sys.argv[2], b"open", partition=0).result()
print("open", flush=True)
sys.stdin.read()
"""


def test_what_a_killed_program_left_open_is_aborted_by_its_successor(server: Server, two: str) -> None:
    command = [sys.executable, "-c", KILLED, server.bootstrap_servers, two]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"open\n"
        program.send_signal(signal.SIGKILL)
    assert read(server, two) == [b"committed"]
    with Producer(server.bootstrap_servers, {"transactional.id": two}) as successor:
        successor.init_transactions()
        with successor.transaction():
            successor.send(two, b"after", partition=0)
    assert read(server, two) == [b"after", b"committed"]
    assert read(server, two, isolation="read_uncommitted") == [b"after", b"committed", b"open"]


def test_a_closed_producer_leaves_no_transaction_open(server: Server, two: str) -> None:
    with Producer(server.bootstrap_servers, {"transactional.id": two}) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(two, b"open", partition=0).result()
    assert read(server, two) == []
    with Consumer(server.bootstrap_servers, {**EARLIEST, "isolation.level": "read_committed"}) as consumer:
        part = TopicPartition(two, 0)
        wait_until(lambda: consumer.end_offsets(part)[part] == 2, within=60, what="the transaction has ended")


@pytest.mark.parametrize("commits", [True, False])
def test_another_producer_ends_a_suspended_transaction(
    server: Server, two: str, producer: Producer, commits: bool
) -> None:
    producer.begin_transaction()
    for number in range(4):
        producer.send(two, b"%d" % number, partition=number % 2)
    suspended = producer.suspend_transaction()
    with pytest.raises(TransactionStateError):
        producer.commit_transaction()
    producer.close()
    assert read(server, two) == []
    for _ in range(2):  # again, as after an answer that did not come
        with Producer(server.bootstrap_servers, {"transactional.id": two}) as other:
            other.resume_transaction(suspended)
            (other.commit_transaction if commits else other.abort_transaction)()
    assert read(server, two) == ([b"0", b"1", b"2", b"3"] if commits else [])


async def test_transactions_over_asyncio(server: Server, two: str, group: str) -> None:
    async with AsyncProducer(server.bootstrap_servers, {"transactional.id": two}) as producer:
        with pytest.raises(TransactionStateError):
            await producer.send(two, b"x")
        await producer.init_transactions()
        async with producer.transaction():
            sent = await producer.send(two, b"kept", partition=0)
            await producer.send_offsets_to_transaction({TopicPartition(two, 0): 5}, group)
        assert (await sent).offset == 0
        with pytest.raises(asyncio.CancelledError):
            await asyncio.gather(lose_over_asyncio(producer, two))
        async with producer.transaction():
            await producer.send(two, b"last", partition=1)
    async with AsyncConsumer(server.bootstrap_servers, {**EARLIEST, "group.id": group}) as consumer:
        committed = await consumer.committed(TopicPartition(two, 0))
        assert [found.offset for found in committed.values() if found] == [5]
    assert read(server, two) == [b"kept", b"last"]


def test_many_threads_send_in_one_transaction(server: Server, two: str, producer: Producer) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        for turn in range(5):
            with producer.transaction():
                list(pool.map(lambda n, turn=turn: producer.send(two, b"%d-%03d" % (turn, n)), range(100)))
    assert read(server, two) == sorted(b"%d-%03d" % (turn, n) for turn in range(5) for n in range(100))
