"""Our clients read at the replica of their rack (KIP-392): three brokers on two racks."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow
import pytest

from pybroker.client import Admin, ColumnFetcher, Consumer, Fetcher, NewTopic, Producer, TopicPartition
from pybroker.config.topic_keys import RACK_AWARE
from pybroker.testing import Cluster
from tests.support.batches import read_batches
from tests.support.conditions import wait_until
from tests.support.wire import Wire, fetch, fetched

pytestmark = pytest.mark.process

RACKS = ("a", "a", "b")
LEADER, NEAR = 1, 3
TOPIC, RECORDS = "near", 200
T0 = TopicPartition(TOPIC, 0)
WAIT_S = 30.0
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
                lambda: len(read_batches(fetched(wire.ask(fetch(TOPIC, 0))).records)) == RECORDS,
                within=WAIT_S,
                what="the near replica shows what is committed",
            )
        yield running


@pytest.fixture(params=[Fetcher, ColumnFetcher, Consumer])
def reader(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Reader]:
    """A client of the second rack at the first record; a fetch brings it one."""
    settings = {"client.rack": "b", "metadata.max.age.ms": "600000", "max.partition.fetch.bytes": "1"}
    with request.param(cluster.bootstrap_servers, settings) as made:
        if isinstance(made, Consumer):
            made.assign([T0])
            made.seek(T0, 0)
        else:
            made.assign({T0: 0})
        yield made


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
