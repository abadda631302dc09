"""Consumers whose broker leads anew with a log that lacks what they have read (KIP-320)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pybroker.client import Consumer, OffsetAndMetadata, Producer, TopicPartition
from pybroker.client.consuming.truncation import TruncationPlan, decide
from pybroker.client.errors import LogTruncationError
from pybroker.protocol.messages.offset_for_leader_epoch import EpochEndOffset
from tests.support.scripted_broker import SERVED, ScriptedBroker

T = TopicPartition("t", 0)
PATIENCE = 60.0


@pytest.fixture
def broker() -> Iterator[ScriptedBroker]:
    """A broker whose log holds a, b, c of epoch 0, then d, e, f of epoch 1; it leads in epoch 1."""
    with ScriptedBroker() as broker:
        write(broker, "abc")
        broker.lead_anew(3)
        write(broker, "def")
        yield broker


def write(broker: ScriptedBroker, values: str) -> None:
    """Append records, each a batch of its own."""
    with Producer(broker.bootstrap_servers, {"acks": "1", "linger.ms": "0"}) as producer:
        for value in values:
            producer.send("t", value.encode(), partition=0).result(PATIENCE)


def reader(broker: ScriptedBroker, reset: str = "earliest") -> Consumer:
    """A consumer of the topic without a group."""
    consumer = Consumer(broker.bootstrap_servers, {"auto.offset.reset": reset, "retry.backoff.ms": "10"})
    consumer.assign([T])
    if reset == "none":
        consumer.seek(T, 0)
    return consumer


def read(consumer: Consumer, count: int) -> str:
    """The values of the next records."""
    found: list[bytes] = []
    while len(found) < count:
        records = consumer.poll(PATIENCE, max_records=count - len(found))
        assert records, found
        found += [record.value or b"" for record in records]
    return b"".join(found).decode()


def test_a_record_and_a_position_have_their_leader_epoch(broker: ScriptedBroker) -> None:
    with reader(broker) as consumer:
        first = consumer.poll(PATIENCE, max_records=2)
        assert [record.leader_epoch for record in first] == [0, 0]
        assert consumer._async._state.positions() == {T: OffsetAndMetadata(2, leader_epoch=0)}
        assert read(consumer, 4) == "cdef"
        assert consumer._async._state.positions() == {T: OffsetAndMetadata(6, leader_epoch=1)}


def test_under_a_new_leader_with_all_of_it_reading_goes_on(broker: ScriptedBroker) -> None:
    with reader(broker) as consumer:
        assert read(consumer, 6) == "abcdef"
        broker.lead_anew(6)
        write(broker, "gh")
        assert read(consumer, 2) == "gh"
        assert broker.looked_up == [1]


def test_with_a_reset_reading_goes_on_where_the_logs_part(broker: ScriptedBroker) -> None:
    with reader(broker) as consumer:
        assert read(consumer, 6) == "abcdef"
        broker.lead_anew(4)
        write(broker, "XYZ")
        assert read(consumer, 3) == "XYZ"
        assert consumer.position(T) == 7


def test_what_a_paused_consumer_has_read_is_looked_up_when_it_goes_on(broker: ScriptedBroker) -> None:
    with reader(broker) as consumer:
        assert read(consumer, 6) == "abcdef"
        consumer.pause(T)
        broker.lead_anew(5)
        write(broker, "XYZ")
        consumer.resume(T)
        assert read(consumer, 3) == "XYZ"


def test_without_a_reset_an_error_names_where_the_logs_part(broker: ScriptedBroker) -> None:
    with reader(broker, "none") as consumer:
        assert read(consumer, 6) == "abcdef"
        broker.lead_anew(4)
        write(broker, "XYZ")
        with pytest.raises(LogTruncationError, match="t-0: the log differs from offset 4 ") as raised:
            consumer.poll(PATIENCE)
        assert raised.value.positions == {T: OffsetAndMetadata(6, leader_epoch=1)}
        assert raised.value.divergent == {T: OffsetAndMetadata(4, leader_epoch=1)}
        consumer.seek(T, raised.value.divergent[T] or 0)
        assert read(consumer, 3) == "XYZ"


def test_a_log_that_knows_no_such_epoch_begins_where_the_reset_says(broker: ScriptedBroker) -> None:
    with reader(broker) as consumer:
        consumer.seek(T, OffsetAndMetadata(5, leader_epoch=9))
        assert read(consumer, 6) == "abcdef"
        assert broker.looked_up == [9]


def test_without_a_reset_a_log_that_knows_no_such_epoch_is_an_error_too(broker: ScriptedBroker) -> None:
    with reader(broker, "none") as consumer:
        consumer.seek(T, OffsetAndMetadata(5, leader_epoch=9))
        with pytest.raises(LogTruncationError, match="at an unknown offset") as raised:
            consumer.poll(PATIENCE)
        assert raised.value.divergent == {T: None}


def test_a_position_with_an_epoch_is_looked_up_before_anything_is_read(broker: ScriptedBroker) -> None:
    with reader(broker) as consumer:
        consumer.seek(T, OffsetAndMetadata(5, leader_epoch=0))
        assert read(consumer, 3) == "def"


def test_a_broker_that_cannot_be_asked_is_believed() -> None:
    with ScriptedBroker(served={**SERVED, 23: (0, 2)}) as broker:
        write(broker, "ab")
        with reader(broker) as consumer:
            consumer.seek(T, OffsetAndMetadata(1, leader_epoch=7))
            assert read(consumer, 1) == "b"


@pytest.mark.parametrize("resets", [True, False])
def test_a_position_at_the_end_of_its_epoch_stands(resets: bool) -> None:
    plan, at = TruncationPlan(), OffsetAndMetadata(5, leader_epoch=2)
    decide(plan, T, at, EpochEndOffset(partition=0, leader_epoch=2, end_offset=5), resets)
    assert plan == TruncationPlan(begin={T: at})
