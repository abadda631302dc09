"""A CreateTopics of many partitions does not wait for their logs; records wait for them, and nobody sees an error."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from pybroker.storage.partitions import Partitions
from pybroker.testing import Broker
from tests.support.batches import batch_of
from tests.support.conditions import wait_until
from tests.support.wire import Wire, fetch, fetched, produce, produced, request

BATCH = batch_of(b"a")
MANY, FEW = 101, 100


class Slow(NamedTuple):
    """A broker that opens no log before it may."""

    server: str
    may_open: threading.Event


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    """One that may not yet."""
    may_open = threading.Event()
    open_all = Partitions.open_all

    def when_allowed(self: Partitions, *args: Any) -> Any:
        may_open.wait()
        return open_all(self, *args)

    with Broker() as broker:
        monkeypatch.setattr(Partitions, "open_all", when_allowed)
        yield Slow(broker.bootstrap_servers, may_open)
        may_open.set()


def creation(name: str, partitions: int) -> Any:
    """A CreateTopics request."""
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1}
    return request("CreateTopics", 7, topics=[topic], timeout_ms=10_000, validate_only=False)


def is_there(wire: Wire, name: str) -> bool:
    """Whether Metadata names a topic's leaders."""
    (topic,) = wire.call("Metadata", 12, topics=[{"name": name}], allow_auto_topic_creation=False).topics
    return bool(topic.error_code == 0)


def test_the_answer_comes_before_the_logs_and_a_record_waits_for_its_own(slow: Slow) -> None:
    with Wire(slow.server) as admin, Wire(slow.server) as producer, Wire(slow.server) as consumer:
        (made,) = admin.query(creation("wide", MANY)).topics
        assert (made.error_code, made.num_partitions) == (0, MANY)
        (topic,) = admin.call("Metadata", 12, topics=[{"name": "wide"}], allow_auto_topic_creation=False).topics
        assert [partition.error_code for partition in topic.partitions] == [0] * MANY
        assert {partition.leader_id for partition in topic.partitions} == {topic.partitions[0].leader_id}
        record = produce("wide", BATCH, partition=MANY - 1)
        wanted = fetch("wide", partitions=[MANY - 1], max_wait_ms=10_000, min_bytes=1)
        sent, requested = producer.send(record), consumer.send(wanted)
        assert is_there(admin, "wide"), "an answer to a later request, so that a refusal would have come"
        assert is_there(admin, "wide")
        assert producer.is_silent(), "it waits for the log"
        assert consumer.is_silent(), "it waits for the log"
        slow.may_open.set()
        assert produced(producer.receive(record, sent)).error_code == 0
        assert fetched(consumer.receive(wanted, requested)).error_code == 0


def test_a_smaller_one_is_answered_when_its_logs_are_open(slow: Slow) -> None:
    with Wire(slow.server) as admin, Wire(slow.server) as other:
        wanted = creation("narrow", FEW)
        requested = admin.send(wanted)
        wait_until(lambda: is_there(other, "narrow"), within=60, what="the topic is there")
        assert is_there(other, "narrow"), "another answer, so that one that is on its way has come"
        assert admin.is_silent(), "it is its logs that its answer waits for"
        slow.may_open.set()
        (made,) = admin.receive(wanted, requested).topics
        assert made.error_code == 0
