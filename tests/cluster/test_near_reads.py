"""Clients read at the replica of their rack (KIP-392), also what is committed alone: three brokers on two racks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from uuid import uuid4

import pyarrow
import pytest

from pybroker.client import Admin, ColumnFetcher, Consumer, Fetcher, NewTopic, Producer, TopicPartition
from pybroker.config.keys.topic_keys import RACK_AWARE
from pybroker.testing import Cluster
from tests.conformance.transactions import READ_COMMITTED, Seen, see
from tests.support.batches import read_batches
from tests.support.conditions import wait_until
from tests.support.wire import Wire, fetch, fetched

pytestmark = pytest.mark.process

RACKS = ("a", "a", "b")
LEADER, NEAR = 1, 3
TOPIC, RECORDS = "near", 200
T0 = TopicPartition(TOPIC, 0)
WAIT_S = 60.0
Reader = Fetcher | ColumnFetcher | Consumer


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster that takes no pause for a death, with a topic that the first broker leads and all have."""
    never_ms = 600_000
    with Cluster(
        brokers=3,
        racks=RACKS,
        properties={"replica.selector.class": RACK_AWARE},
        broker_session_timeout_ms=never_ms,
        replica_lag_time_max_ms=never_ms,
    ) as running:
        with Admin(running.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(TOPIC, assignments={0: [LEADER, 2, NEAR]})])
            admin.wait_for_leaders(TOPIC)
        running.wait_in_sync(TOPIC)
        with Producer(running.bootstrap_servers, {"acks": "all"}) as producer:
            for number in range(RECORDS):
                producer.send(TOPIC, b"%d" % number).result(WAIT_S)
        with Wire(running.address(NEAR)) as wire:
            wait_until(
                lambda: len(read_batches(fetched(wire.query(fetch(TOPIC, 0))).records)) == RECORDS,
                within=WAIT_S,
                what="the near replica shows what is committed",
            )
        yield running


READERS = (Fetcher, ColumnFetcher, Consumer)


@pytest.fixture(params=READERS)
def reader(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Reader]:
    """A client of the second rack at the first record; a fetch brings it one."""
    with request.param(cluster.bootstrap_servers, SETTINGS) as made:
        yield at_the_beginning(made, T0)


SETTINGS = {"client.rack": "b", "metadata.max.age.ms": "600000", "max.partition.fetch.bytes": "1"}


def at_the_beginning(made: Reader, where: TopicPartition) -> Reader:
    if isinstance(made, Consumer):
        made.assign([where])
        made.seek(where, 0)
    else:
        made.assign({where: 0})
    return made


def offsets(reader: Reader, count: int) -> list[int]:
    """The offsets of the next records, so many of them."""
    found: list[int] = []
    deadline = time.monotonic() + WAIT_S
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} records came"
        if isinstance(reader, ColumnFetcher):
            taken = reader.take(0.2, columns=["offset"])
            if taken is not None:
                found += pyarrow.record_batch(taken).column(0).to_pylist()
        else:
            found += [record.offset for record in reader.poll(0.2)]
    return found


def test_records_come_from_the_replica_of_the_rack_while_the_leader_is_silent(cluster: Cluster, reader: Reader) -> None:
    read = offsets(reader, 1)
    cluster.pause(LEADER)
    try:
        assert len(read) < RECORDS // 2, "what was fetched ahead says nothing"
        assert read + offsets(reader, RECORDS - len(read)) == list(range(RECORDS))
    finally:
        cluster.resume(LEADER)


def test_a_seek_stays_at_the_replica_of_the_rack(cluster: Cluster, reader: Reader) -> None:
    """The leader is silent, and its word that another replica is to be read holds for any position."""
    offsets(reader, 1)
    cluster.pause(LEADER)
    try:
        reader.seek(T0, RECORDS // 2)
        wanted = list(range(RECORDS // 2, RECORDS))
        assert offsets(reader, len(wanted)) == wanted
    finally:
        cluster.resume(LEADER)


@pytest.fixture
def topic(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    """A topic of this test, with the replicas of the other."""
    name = f"near-{request.node.name.partition('[')[0]}-{uuid4().hex[:8]}"
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, assignments={0: [LEADER, 2, NEAR]})])
        admin.wait_for_leaders(name)
    cluster.wait_in_sync(name)
    return name


@pytest.fixture
def producer(cluster: Cluster, topic: str) -> Iterator[Producer]:
    with Producer(cluster.bootstrap_servers, {"transactional.id": topic, "linger.ms": "0"}) as made:
        made.init_transactions()
        yield made


def write(producer: Producer, topic: str, count: int) -> list[int]:
    """Send records one by one; their offsets."""
    return [producer.send(topic, b"%d" % number).result(WAIT_S).offset for number in range(count)]


def at_near(cluster: Cluster, topic: str, offset: int) -> Seen:
    """What a read_committed reader of the near replica sees, once that knows what is committed below `offset`."""
    with Wire(cluster.address(NEAR)) as wire:
        wait_until(
            lambda: see(wire, topic).high_watermark >= offset,
            within=WAIT_S,
            what=lambda: f"the near replica shows {offset} records: {see(wire, topic)}",
        )
        return see(wire, topic)


@pytest.mark.parametrize("commits", [True, False], ids=["commit", "abort"])
def test_a_marker_wakes_a_reader_of_the_follower(
    cluster: Cluster, topic: str, producer: Producer, commits: bool
) -> None:
    producer.begin_transaction()
    of_transaction = write(producer, topic, 3)
    with Producer(cluster.bootstrap_servers, {"acks": "all"}) as plain:
        after = plain.send(topic, b"after").result(WAIT_S).offset
    seen = at_near(cluster, topic, after + 1)
    assert (seen.committed, seen.last_stable_offset, seen.aborted or []) == ([], of_transaction[0], [])
    waiting = fetch(topic, of_transaction[0], max_wait_ms=600_000, min_bytes=1, isolation_level=READ_COMMITTED)
    with Wire(cluster.address(NEAR), timeout=WAIT_S) as wire:  # far less than the request would wait
        number = wire.send(waiting)
        at_near(cluster, topic, after + 1)
        if commits:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
        response = fetched(wire.receive(waiting, number))
    assert response.error_code == 0
    assert response.last_stable_offset >= after + 1
    assert [batch.base_offset for batch in read_batches(response.records)][:4] == [*of_transaction, after]
    aborted = [one.first_offset for one in response.aborted_transactions or []]
    assert aborted == ([] if commits else of_transaction[:1])
    expected = [b"0", b"1", b"2", b"after"] if commits else [b"after"]
    assert at_near(cluster, topic, after + 2).committed == expected


@pytest.mark.parametrize("kind", READERS)
def test_readers_of_what_is_committed_read_it_at_the_replica_of_their_rack(
    cluster: Cluster, topic: str, producer: Producer, kind: type[Reader]
) -> None:
    with producer.transaction():
        expected = write(producer, topic, 5)
    producer.begin_transaction()
    write(producer, topic, 3)
    producer.abort_transaction()
    with producer.transaction():
        expected += write(producer, topic, 5)
    producer.begin_transaction()
    still_open = write(producer, topic, 3)
    at_near(cluster, topic, still_open[-1] + 1)
    settings = {**SETTINGS, "isolation.level": "read_committed"}
    with kind(cluster.bootstrap_servers, settings) as made:
        reader = at_the_beginning(made, TopicPartition(topic, 0))
        read = offsets(reader, 1)
        cluster.pause(LEADER)
        try:
            assert read + offsets(reader, len(expected) - len(read)) == expected
        finally:
            cluster.resume(LEADER)
        producer.commit_transaction()
        assert offsets(reader, len(still_open)) == still_open
