"""Consume, transform, produce: the output is the input, each record once, whatever happens to the programs."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence

import pytest

from pybroker.client import (
    Admin,
    Consumer,
    ConsumeTransformProduce,
    NewTopic,
    Output,
    Producer,
    ProducerFencedError,
    Record,
    TopicPartition,
)
from pybroker.client.errors import SerializationError
from tests.conformance.conftest import Server, serves
from tests.support.conditions import wait_until

END_TXN = 26
PARTITIONS = 4
EARLIEST = {"auto.offset.reset": "earliest"}


@pytest.fixture(autouse=True)
def with_transactions(server: Server) -> None:
    if not serves(server, END_TXN):
        pytest.skip("the broker has no transaction coordinator yet")


@pytest.fixture
def source(server: Server, topic_name: str) -> str:
    """A topic of four partitions, and another of that name with `-out`."""
    with Admin(server.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, PARTITIONS, -1) for name in (topic_name, f"{topic_name}-out")])
        for name in (topic_name, f"{topic_name}-out"):
            admin.wait_for_leaders(name)
    return topic_name


def fill(server: Server, topic: str, count: int, first: int = 0) -> None:
    with Producer(server.bootstrap_servers) as producer:
        for number in range(first, first + count):
            producer.send(topic, b"%06d" % number, b"%d" % (number % 13), partition=number % PARTITIONS)


def copy(records: Sequence[Record]) -> Iterable[Output]:
    """Every record, to the partition of the same number."""
    for record in records:
        yield Output(f"{record.topic}-out", record.value, record.key, record.partition)


def written(server: Server, topic: str) -> list[list[bytes]]:
    """By partition, what a reader of what is committed sees of the output."""
    parts = [TopicPartition(f"{topic}-out", index) for index in range(PARTITIONS)]
    found: list[list[bytes]] = [[] for _ in parts]
    properties = {**EARLIEST, "enable.auto.commit": False, "isolation.level": "read_committed"}
    with Consumer(server.bootstrap_servers, properties) as consumer:
        ends = consumer.end_offsets(*parts)
        consumer.assign(parts)
        while any(consumer.position(part) < ends[part] for part in parts):
            for record in consumer.poll(1):
                found[record.partition].append(record.value or b"")
    return found


def expected(count: int) -> list[list[bytes]]:
    return [[b"%06d" % number for number in range(index, count, PARTITIONS)] for index in range(PARTITIONS)]


def opened(
    server: Server, source: str, name: str, transform: object = copy, **consumer: object
) -> ConsumeTransformProduce:
    return ConsumeTransformProduce(
        server.bootstrap_servers,
        [source],
        transform,  # type: ignore[arg-type]
        group_id=source,
        transactional_id=f"{source}-{name}",
        consumer={**EARLIEST, "max.poll.records": 50, **consumer},
        producer={"linger.ms": 0},
    )


def test_each_record_is_written_once_and_in_order(server: Server, source: str) -> None:
    fill(server, source, 1000)
    with opened(server, source, "a") as job:
        done = 0
        while done < 1000:
            done += job.step()
        assert job.step(0.1) == 0
    assert written(server, source) == expected(1000)


def test_a_transform_that_fails_writes_nothing_and_meets_the_same_records_again(server: Server, source: str) -> None:
    fill(server, source, 200)
    failing = iter([False, True, False, True])

    def fails(records: Sequence[Record]) -> Iterable[Output]:
        yield from copy(records)
        if next(failing, False):
            raise ArithmeticError("not this time")

    with opened(server, source, "a", fails) as job:
        done, failures = 0, 0
        while done < 200:
            try:
                done += job.step()
            except ArithmeticError:
                failures += 1
        assert failures == 2
    assert written(server, source) == expected(200)


def test_a_record_that_cannot_be_sent_leaves_the_others_unwritten(server: Server, source: str) -> None:
    fill(server, source, 10)

    def wrong(records: Sequence[Record]) -> Iterable[Output]:
        yield from copy(records)
        yield Output(f"{source}-out", 7)  # type: ignore[arg-type]

    with opened(server, source, "a", wrong) as job, pytest.raises((TypeError, SerializationError)):
        wait_until(lambda: bool(job.step()), within=60, what="records")
    assert written(server, source) == [[] for _ in range(PARTITIONS)]


def test_a_producer_that_was_fenced_is_replaced_once(server: Server, source: str) -> None:
    fill(server, source, 200)
    fenced_at = [1]

    def fence(records: Sequence[Record]) -> Iterable[Output]:
        yield from copy(records)
        if fenced_at and fenced_at.pop():
            with Producer(server.bootstrap_servers, {"transactional.id": f"{source}-a"}) as other:
                other.init_transactions()

    with opened(server, source, "a", fence) as job:
        done = 0
        while done < 200:
            done += job.step()
    assert written(server, source) == expected(200)


def test_a_producer_that_is_fenced_again_and_again_gives_up(server: Server, source: str) -> None:
    fill(server, source, 10)

    def fence(records: Sequence[Record]) -> Iterable[Output]:
        yield from copy(records)
        with Producer(server.bootstrap_servers, {"transactional.id": f"{source}-a"}) as other:
            other.init_transactions()

    with opened(server, source, "a", fence) as job, pytest.raises(ProducerFencedError):
        wait_until(lambda: bool(job.step()), within=60, what="records")
    assert written(server, source) == [[] for _ in range(PARTITIONS)]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_programs_that_come_and_go_write_each_record_once(server: Server, source: str, protocol: str) -> None:
    stop, total = threading.Event(), 2000
    failures: list[BaseException] = []

    def work(name: str, stop: threading.Event) -> None:
        try:
            with opened(server, source, name, **{"group.protocol": protocol}) as job:
                job.run(stop)
        except BaseException as error:  # noqa: BLE001 (the test raises it)
            failures.append(error)

    leaves = threading.Event()
    threads = [threading.Thread(target=work, args=("a", stop)), threading.Thread(target=work, args=("b", leaves))]
    threads[0].start()
    fill(server, source, total // 2)
    threads[1].start()
    fill(server, source, total // 2, total // 2)
    wait_until(lambda: sum(map(len, written(server, source))) > total // 4, within=60, what="a part")
    leaves.set()
    threads.append(threading.Thread(target=work, args=("c", stop)))
    threads[2].start()
    try:
        wait_until(lambda: failures or sum(map(len, written(server, source))) >= total, within=60, what="all")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures
    assert written(server, source) == expected(total)


PROGRAM = """
import sys
from pybroker.client import ConsumeTransformProduce, Output

def copy(records):
    for record in records:
        yield Output(sys.argv[2] + "-out", record.value, record.key, record.partition)

with ConsumeTransformProduce(
    sys.argv[1], [sys.argv[2]], copy, group_id=sys.argv[2], transactional_id=sys.argv[2] + "-a",
    consumer={"auto.offset.reset": "earliest", "max.poll.records": 20, "group.instance.id": "a"},
    producer={"linger.ms": 0},
) as job:
    while True:
        if job.step():
            print("stepped", flush=True)
"""


def test_programs_that_are_killed_write_each_record_once(server: Server, source: str) -> None:
    total = 1500
    fill(server, source, total)
    command = [sys.executable, "-c", PROGRAM, server.bootstrap_servers, source]
    for steps in (5, 11):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
            assert program.stdout is not None
            for _ in range(steps):
                assert program.stdout.readline() == b"stepped\n"
            program.send_signal(signal.SIGKILL)
    assert 0 < sum(map(len, written(server, source))) < total
    with opened(server, source, "a", **{"group.instance.id": "a"}) as job:  # the same member: no wait for the former
        while sum(map(len, written(server, source))) < total:
            job.step()
    assert written(server, source) == expected(total)
