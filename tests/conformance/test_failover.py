"""Every client library sees the leader of its partition killed under load: nothing acknowledged is lost, order is kept.

The longest time between two appends is printed (`pytest -rP`), not judged: it is the client's as much as the brokers'.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pybroker.client import Admin, Consumer, NewTopic, TopicPartition
from pybroker.client.administration.topics import LATEST
from pybroker.testing import Cluster
from tests.support import programs
from tests.support.conditions import wait_until
from tests.support.failover_clients import LIBRARIES, Client, Numbered
from tests.support.franz import NEEDS_GO, has_go

pytestmark = [pytest.mark.process]

_ENOUGH = 300
"""Records before the kill, and after it."""
_WITHIN_S = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3) as running:
        yield running


def test_no_library_loses_an_acknowledged_record_when_the_leader_is_killed(
    cluster: Cluster, library: str, tmp_path: Path
) -> None:
    topic = f"failover-{library}"
    with Admin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic, 1, 3, {"message.timestamp.type": "LogAppendTime"})])
    killed = cluster.leader(topic)
    make_producer, make_consumer = LIBRARIES[library]
    with (
        working(make_consumer(cluster.bootstrap_servers, topic, tmp_path)) as consumer,
        working(make_producer(cluster.bootstrap_servers, topic, tmp_path)) as producer,
    ):
        wait_for_records(consumer, _ENOUGH)
        cluster.kill(killed)
        cluster.wait_for_partition(topic, 0, lambda it: it.leader not in (-1, killed))
        wait_for_records(consumer, len(consumer.records) + _ENOUGH)
        producer.finish()
        end = end_of(cluster, topic)
        wait_for_records(consumer, end)
        consumer.finish()
    cluster.start(killed)
    cluster.wait_in_sync(topic)

    kept, longest_gap_ms = read_all(cluster, topic, end)
    print(
        f"{library}: {len(producer.records)} acknowledged, the longest gap between two appends is {longest_gap_ms} ms"
    )
    assert (producer.errors, consumer.errors) == ([], [])
    assert [number for _, number in kept] == list(range(len(kept))), "each once, in the order of sending"
    assert consumer.records == kept
    by_offset = dict(kept)
    lost = [one for one in producer.records if one.offset >= 0 and by_offset.get(one.offset) != one.number]
    assert lost == []
    assert max(one.number for one in producer.records) < len(kept)


_MARKS = {"java": pytest.mark.java, "kcat": pytest.mark.kcat}


@pytest.fixture(params=[pytest.param(name, marks=_MARKS.get(name, ())) for name in LIBRARIES])
def library(request: pytest.FixtureRequest) -> str:
    """A client library's name; one whose programs are not here is skipped."""
    if request.param == "java":
        programs.kafka_tools()
    if request.param == "franz-go" and not has_go():
        pytest.skip(NEEDS_GO)
    return str(request.param)


@contextmanager
def working(client: Client) -> Iterator[Client]:
    """A client that works during the block."""
    client.start()
    try:
        yield client
    finally:
        client.stopped.set()
        client.join(_WITHIN_S)


def wait_for_records(client: Client, count: int) -> None:
    """Wait until a client has that many records; a client that failed is not waited for."""

    def reached() -> bool:
        if not client.is_alive():
            client.finish()
        return len(client.records) >= count

    def seen() -> str:
        return f"{client.name} has {count} records; it has {len(client.records)}, errors: {client.errors[:3]}"

    wait_until(reached, within=_WITHIN_S, what=seen)


def end_of(cluster: Cluster, topic: str) -> int:
    """Where a topic's one partition ends."""
    where = TopicPartition(topic, 0)
    with Admin(cluster.bootstrap_servers) as admin:
        return admin.list_offsets({where: LATEST})[where].offset


def read_all(cluster: Cluster, topic: str, end: int) -> tuple[list[Numbered], int]:
    """The records of a topic's one partition, and the longest time between two appends in milliseconds."""
    kept: list[Numbered] = []
    times: list[int] = []
    with Consumer(
        cluster.bootstrap_servers, {"enable.auto.commit": False, "auto.offset.reset": "earliest"}
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])

        def read() -> bool:
            for got in consumer.poll(0.1):
                kept.append(Numbered(got.offset, int(got.value or b"")))
                times.append(got.timestamp_ms)
            return len(kept) >= end

        wait_until(read, within=_WITHIN_S, what=lambda: f"{topic} is read to its end {end}: {len(kept)}")
    return kept, max(later - earlier for earlier, later in itertools.pairwise(times))
