"""Real clients in groups: they share the partitions, commit, and go on from what they committed."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator

import aiokafka
import aiokafka.structs
import confluent_kafka
import kafka
import kafka.structs
import pytest

from tests.conformance.classic_members import OK, UNKNOWN_MEMBER_ID, Member
from tests.conformance.conftest import Server, Topic, coordinated, serving
from tests.support.conditions import wait_until
from tests.support.franz import run_corpus
from tests.support.wire import Wire

PARTITIONS = 12
RECORDS = 600
PATIENCE_SECONDS = 60


def fill(server: Server, topic: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": server.bootstrap_servers})
    for number in range(RECORDS):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_SECONDS) == 0


def in_time(condition: Callable[[], bool], turn: Callable[[], None]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not done within {PATIENCE_SECONDS} s"
        turn()


def test_confluent_kafka_shares_partitions_and_goes_on_from_its_offsets(
    server: Server, create: Callable[..., Topic]
) -> None:
    topic = create(partitions=PARTITIONS).name
    fill(server, topic)
    seen: set[int] = set()

    def consumer() -> confluent_kafka.Consumer:
        made = confluent_kafka.Consumer(
            {
                "bootstrap.servers": server.bootstrap_servers,
                "group.id": f"confluent-{topic}",
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 100,
                "partition.assignment.strategy": "cooperative-sticky",
                "heartbeat.interval.ms": 200,
                "session.timeout.ms": 6000,
            }
        )
        made.subscribe([topic])
        return made

    members = [consumer() for _ in range(3)]

    def turn() -> None:
        for member in members:
            for got in member.consume(500, 0.05):
                assert got.error() is None
                seen.add(int(got.value() or b""))

    in_time(lambda: len(seen) == RECORDS and all(len(member.assignment()) == 4 for member in members), turn)
    shares = [{part.partition for part in member.assignment()} for member in members]
    assert sorted(partition for share in shares for partition in share) == list(range(PARTITIONS))
    for member in members:
        member.close()  # It commits what it has handed out.
    members = [consumer()]
    in_time(lambda: len(members[0].assignment()) == PARTITIONS, lambda: turn_without_records(members[0]))
    members[0].close()


def turn_without_records(member: confluent_kafka.Consumer) -> None:
    assert [got for got in member.consume(10, 0.2) if got.error() is None] == []


def test_kafka_python_commits_in_a_group(server: Server, create: Callable[..., Topic]) -> None:
    topic = create(partitions=PARTITIONS).name
    fill(server, topic)
    settings = {
        "bootstrap_servers": server.bootstrap_servers,
        "group_id": f"kafka-python-{topic}",
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "heartbeat_interval_ms": 300,
    }
    consumer = kafka.KafkaConsumer(topic, **settings)
    # It may lead its group before it knows the topic; it deals out no partitions then, and does not look again.
    assert consumer.partitions_for_topic(topic) == set(range(PARTITIONS))
    seen: set[int] = set()

    def turn() -> None:
        for records in consumer.poll(timeout_ms=200).values():
            seen.update(int(record.value) for record in records)

    in_time(lambda: len(seen) == RECORDS, turn)
    consumer.commit()
    consumer.close()
    again = kafka.KafkaConsumer(topic, **settings)
    assert again.partitions_for_topic(topic) == set(range(PARTITIONS))
    in_time(lambda: len(again.assignment()) == PARTITIONS, lambda: again.poll(timeout_ms=200))
    for partition in range(PARTITIONS):
        where = kafka.structs.TopicPartition(topic, partition)
        assert again.committed(where) == again.position(where) == RECORDS // PARTITIONS
    again.close()


@pytest.fixture
def collected() -> Iterator[None]:
    """Collect garbage after the test, under its filter of warnings, not in a later test."""
    yield
    gc.collect()


# With several brokers it leaves the socket of a connection to the collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("collected")
async def test_aiokafka_commits_in_a_group(server: Server, create: Callable[..., Topic]) -> None:
    topic = create(partitions=PARTITIONS).name
    fill(server, topic)

    def consumer() -> aiokafka.AIOKafkaConsumer:
        return aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=server.bootstrap_servers,
            group_id=f"aiokafka-{topic}",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )

    seen: set[int] = set()
    async with consumer() as first:
        while len(seen) < RECORDS:
            for records in (await first.getmany(timeout_ms=1000)).values():
                seen.update(int(record.value) for record in records)
        await first.commit()
    async with consumer() as again:
        for partition in range(PARTITIONS):
            where = aiokafka.structs.TopicPartition(topic, partition)
            assert await again.committed(where) == await again.position(where) == RECORDS // PARTITIONS


def test_franz_go_goes_on_from_its_commits(server: Server, create: Callable[..., Topic]) -> None:
    topic = create(partitions=PARTITIONS).name
    fill(server, topic)
    seen: list[int] = []
    for count in (RECORDS // 3, RECORDS - RECORDS // 3):
        words = ("group", server.bootstrap_servers, topic, str(count), f"franz-{topic}")
        seen += [int(record.value or b"") for record in run_corpus(*words, timeout_s=PATIENCE_SECONDS)]
    assert sorted(seen) == list(range(RECORDS))


def test_a_consumer_may_come_when_the_first_one_left_during_the_initial_delay() -> None:
    delay = {"group.initial.rebalance.delay.ms": "4000"}
    with serving(delay) as server, Wire(server.bootstrap_servers) as wire:
        topics = [{"name": "shared", "num_partitions": PARTITIONS, "replication_factor": 1}]
        wire.call("CreateTopics", 7, topics=topics, timeout_ms=30_000)

        group = coordinated(wire, server)

        def state() -> str:
            return str(wire.call("DescribeGroups", 5, groups=[group]).groups[0].group_state)

        first = Member(server, group, kind="consumer", protocols={"custom": b"meta"})
        first.begin_join()
        first.id = first.end_join().member_id
        first.begin_join()
        wait_until(lambda: state() == "PreparingRebalance", within=PATIENCE_SECONDS, what="the first has come")
        removed = wire.call("LeaveGroup", 5, group_id=group, members=[{"member_id": first.id}])
        assert (removed.members[0].error_code, first.end_join().error_code) == (OK, UNKNOWN_MEMBER_ID)
        assert state() == "PreparingRebalance"
        first.wire.__exit__()
        arrived = kafka.KafkaConsumer("shared", group_id=group, bootstrap_servers=server.bootstrap_servers)
        in_time(lambda: len(arrived.assignment()) == PARTITIONS, lambda: arrived.poll(timeout_ms=200))
        arrived.close()
