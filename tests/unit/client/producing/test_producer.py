"""What a producer promises when brokers fail, refuse and stay away."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

from pybroker.client import LoadGenerator
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.errors import (
    BrokerError,
    BufferFullError,
    ClosedError,
    DeliveryError,
    RecordError,
    SettingError,
    UnreachableError,
)
from pybroker.client.producing.producer import Continuation, Producer
from pybroker.protocol.errors import ErrorCode
from tests.support.batches import read_batches
from tests.support.conditions import wait_until
from tests.support.scripted_broker import DROP, HELD, LOST, ScriptedBroker

NOT_LEADER, TOO_LARGE, CLUSTER_AUTHORIZATION_FAILED = 6, 10, 31
INIT_PRODUCER_ID = 22
QUICK = {"linger.ms": 0, "retry.backoff.ms": 5, "reconnect.backoff.ms": 5}


def test_records_are_written_in_order_and_each_learns_its_offset() -> None:
    with ScriptedBroker() as broker, Producer(broker.bootstrap_servers) as producer:
        deliveries = [producer.send("t", b"%d" % number, partition=0) for number in range(100)]
        producer.flush()
        assert [d.result().offset for d in deliveries] == list(range(100))
        assert all(d.done() for d in deliveries)


@pytest.mark.parametrize("failure", [NOT_LEADER, DROP])
def test_a_batch_that_may_succeed_later_is_sent_again_with_the_same_sequence(failure: int) -> None:
    with ScriptedBroker([failure, failure, 0]) as broker, Producer(broker.bootstrap_servers, QUICK) as producer:
        assert producer.send("t", b"x").result().offset == 0
        first, second, third = broker.received
        assert first == second == third
        assert (first.producer_id, first.sequence, first.count) == (1, 0, 1)


def test_batches_behind_a_failed_one_follow_it_in_order() -> None:
    with ScriptedBroker([NOT_LEADER, 0, 0, NOT_LEADER]) as broker:
        settings = {**QUICK, "batch.size": 200, "linger.ms": 5}
        with Producer(broker.bootstrap_servers, settings) as producer:
            deliveries = [producer.send("t", b"%03d" % number * 20) for number in range(30)]
            producer.flush()
            assert [d.result().offset for d in deliveries] == list(range(30))
        assert broker.identities == 1
        assert {r.producer_id for r in broker.received} == {1}


def test_a_refused_batch_fails_and_later_ones_get_a_new_identity() -> None:
    with ScriptedBroker([TOO_LARGE, 0]) as broker, Producer(broker.bootstrap_servers, QUICK) as producer:
        with pytest.raises(BrokerError, match=r"topic \"t\" partition 0: MESSAGE_TOO_LARGE \(10\)") as refusal:
            producer.send("t", b"x").result()
        assert refusal.value.code == ErrorCode.MESSAGE_TOO_LARGE
        assert producer.send("t", b"y").result().offset == 0
        assert [(r.producer_id, r.sequence) for r in broker.received] == [(1, 0), (2, 0)]


def test_a_producer_goes_on_in_the_place_of_another() -> None:
    place = Continuation(1, 0, {TopicPartition("t", 0): 2})
    with ScriptedBroker([0, 0, DROP, 0]) as broker:
        for continues in (None, place):
            with Producer(broker.bootstrap_servers, QUICK, continues=continues) as producer:
                for _ in range(2):
                    producer.send("t", b"x", partition=0).result()
        assert [(r.producer_id, r.sequence) for r in broker.received] == [(1, 0), (1, 1), (1, 2), (1, 2), (1, 3)]
        assert broker.identities == 1


def test_of_two_that_go_on_from_one_place_one_gets_through() -> None:
    place = Continuation(70, 3)
    with ScriptedBroker() as broker:
        with Producer(broker.bootstrap_servers, QUICK, continues=place) as first:
            first.send("t", b"x").result()
        with Producer(broker.bootstrap_servers, QUICK, continues=place) as second:
            for _ in range(2):
                with pytest.raises(BrokerError, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
                    second.send("t", b"y").result()
        assert [r.sequence for r in broker.received] == [0, 0]


def test_a_producer_that_goes_on_for_another_ends_with_its_first_failure() -> None:
    place = Continuation(70, 3)
    with (
        ScriptedBroker([TOO_LARGE, 0]) as broker,
        Producer(broker.bootstrap_servers, QUICK, continues=place) as producer,
    ):
        for _ in range(2):
            with pytest.raises(BrokerError, match="MESSAGE_TOO_LARGE"):
                producer.send("t", b"x").result()
        assert (len(broker.received), broker.identities) == (1, 0)


def test_going_on_for_another_needs_idempotence() -> None:
    with pytest.raises(SettingError, match=r"enable\.idempotence=false: must be true for a producer that goes on"):
        Producer("127.0.0.1:1", {"acks": "1"}, continues=Continuation(70, 3))


def test_without_idempotence_no_identity_is_asked_for() -> None:
    settings = {**QUICK, "acks": "1"}
    with ScriptedBroker() as broker, Producer(broker.bootstrap_servers, settings) as producer:
        producer.send("t", b"x").result()
        assert (broker.identities, broker.received[0].producer_id, broker.received[0].sequence) == (0, -1, -1)


def test_what_is_not_acknowledged_in_time_is_given_up() -> None:
    settings = {**QUICK, "delivery.timeout.ms": 300, "request.timeout.ms": 100}
    with ScriptedBroker([NOT_LEADER] * 1000) as broker, Producer(broker.bootstrap_servers, settings) as producer:
        delivery = producer.send("t", b"x")
        with pytest.raises(DeliveryError, match=r"delivery.timeout.ms=300.*NOT_LEADER_OR_FOLLOWER"):
            delivery.result()


def test_a_full_buffer_blocks_and_then_refuses() -> None:
    settings = {**QUICK, **HELD, "buffer.memory": 1000, "batch.size": 1000, "max.block.ms": 1000}
    with ScriptedBroker([NOT_LEADER]) as broker:
        producer = Producer(broker.bootstrap_servers, settings)
        producer.send("t", b"x" * 600)
        with pytest.raises(BufferFullError, match=r"buffer.memory=1000 stayed full for max.block.ms=1000"):
            producer.send("t", b"x" * 600)
        with pytest.raises(DeliveryError, match="1 batches still unacknowledged"):
            producer.close(0)


def test_an_unknown_server_is_named_after_max_block_ms() -> None:
    refused = pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1 within \d{1,4} ms.*refused")
    with Producer("127.0.0.1:1", {"max.block.ms": 50}) as producer, refused:
        producer.send("t", b"x")


def test_a_record_above_the_limit_and_a_partition_beyond_the_last_are_refused() -> None:
    with ScriptedBroker() as broker, Producer(broker.bootstrap_servers, {"max.request.size": 100}) as producer:
        with pytest.raises(RecordError, match=r"a record of 300 bytes is larger than max.request.size=100"):
            producer.send("t", b"x" * 300)
        with pytest.raises(RecordError, match="has 1 partitions; there is no partition 3"):
            producer.send("t", b"x", partition=3)


def test_a_closed_producer_takes_nothing() -> None:
    with ScriptedBroker() as broker:
        producer = Producer(broker.bootstrap_servers)
        producer.send("t", b"x")
        producer.close()
        assert [r.count for r in broker.received] == [1]
        with pytest.raises(ClosedError, match="the producer is closed"):
            producer.send("t", b"x")


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"acks": "2"}, "acks=2"),
        ({"acks": "1", "enable.idempotence": "true"}, "acks=1: must be all"),
        ({"max.in.flight.requests.per.connection": 6, "enable.idempotence": "true"}, "connection=6"),
        ({"compression.type": "brotli"}, "brotli"),
        ({"delivery.timeout.ms": 10}, "delivery.timeout.ms=10"),
        ({"batch.size": "large"}, "batch.size=large: must be a whole number"),
    ],
)
def test_settings_that_cannot_work_are_named(settings: dict[str, object], complaint: str) -> None:
    with pytest.raises(SettingError, match=complaint):
        Producer("127.0.0.1:9092", settings)


def test_what_was_measured_is_what_was_sent() -> None:
    with ScriptedBroker() as broker, Producer(broker.bootstrap_servers, {"batch.size": 10_000}) as producer:
        LoadGenerator(producer).send_random_letters("t", 0, 100, 1000)
        LoadGenerator(producer).begin_phase(1)
        assert LoadGenerator(producer).send_many("t", 0, b"z" * 5000, 100) == 50
        producer.flush()
        tally, (middle, most) = LoadGenerator(producer).summary(0, [0.5, 1.0])
        steady, _ = LoadGenerator(producer).summary(1, [])
        assert (tally.records, tally.bytes, tally.failed, steady.records) == (1050, 105_000, 0, 50)
        assert 0 < middle <= most
        assert sum(r.count for r in broker.received) == 1050
        with pytest.raises(ValueError, match="5001 bytes are no whole number"):
            LoadGenerator(producer).send_many("t", 0, b"z" * 5001, 100)


def test_random_letters_differ_from_record_to_record() -> None:
    with ScriptedBroker() as broker:
        with Producer(broker.bootstrap_servers, {"acks": "1"}) as producer:
            LoadGenerator(producer).send_random_letters("t", 0, 64, 2)
        raw = broker.received[0].raw[61:]
        first, second = raw[8:72], raw[81:145]
        assert first != second
        assert (first + second).isalpha()
        assert (first + second).isupper()


HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def columns(**given: Any) -> pa.RecordBatch:
    """A record batch; plain lists become binary."""
    arrays = {k: v if isinstance(v, pa.Array) else pa.array(v, pa.binary()) for k, v in given.items()}
    return pa.record_batch(list(arrays.values()), names=list(arrays))


def sent_values(broker: ScriptedBroker) -> list[bytes | None]:
    return [value for received in broker.received for batch in read_batches(received.raw) for value in batch.values]


def test_every_row_of_a_batch_becomes_a_record() -> None:
    with ScriptedBroker() as broker, Producer(broker.bootstrap_servers, {"batch.size": 500}) as producer:
        values = [b"%03d" % number * (number % 5) if number % 11 else None for number in range(300)]
        assert len(producer.send_columns(columns(value=values), topic="t")) == 300
        assert len(producer.send_columns(columns(value=values).slice(100, 50), topic="t")) == 50
        assert len(producer.send_columns(columns(value=[]), topic="t")) == 0
        assert len(producer.send_columns(columns(value=pa.array(["text"], pa.large_string())), topic="t")) == 1
        producer.flush()
        assert sent_values(broker) == [*values, *values[100:150], b"text"]


def test_a_batch_is_given_back_to_its_owner_and_taken_once() -> None:
    with ScriptedBroker() as broker, Producer(broker.bootstrap_servers) as producer:
        before = pa.total_allocated_bytes()
        for _ in range(20):
            producer.send_columns(columns(value=[b"x" * 1000] * 1000), topic="t")
        assert pa.total_allocated_bytes() - before < 1_000_000
        schema, array = columns(value=[b"x"]).__arrow_c_array__()
        assert len(producer.native._send_batch((schema, array), "t")) == 1
        with pytest.raises(SettingError, match="taken by somebody before"):
            producer.native._send_batch((schema, array), "t")
        with pytest.raises(ValueError, match="incorrect name"):
            producer.native._send_batch((array, schema), "t")


@pytest.mark.parametrize(
    ("batch", "complaint"),
    [
        ({"key": [b"k"]}, r'column "value" is missing: must be binary or string'),
        ({"value": pa.array([1])}, r'column "value" is Int64: must be binary or string'),
        ({"value": [b"v"], "topic": [b"t"]}, r'column "topic" is Binary: must be string'),
        ({"value": [b"v"], "headers": ["x"]}, r'column "headers" is Binary: must be list<struct<key: string'),
        ({"value": [b"v"], "timestamp": pa.array([1])}, r'column "timestamp" is Int64: must be timestamp\[us\]'),
        ({"value": [b"v"], "partition": pa.array([1.5])}, r'column "partition" is Float64: must be int32 or int64'),
        ({"value": [b"v"], "lag": pa.array([1])}, r'column "lag" is not known: must be value, key, topic'),
    ],
)
def test_columns_that_cannot_be_sent_are_named(batch: dict[str, Any], complaint: str) -> None:
    with Producer("127.0.0.1:1") as producer, pytest.raises(SettingError, match=complaint):
        producer.send_columns(columns(**batch), topic="t")


def test_what_is_no_record_batch_is_refused() -> None:
    with Producer("127.0.0.1:1") as producer:
        with pytest.raises(SettingError, match=r"the batch.*is an array of Int64: must be a record batch"):
            producer.send_columns(pa.array([1]), topic="t")
        holes = pa.StructArray.from_arrays([pa.array([b"a", b"b"])], ["value"], mask=pa.array([False, True]))
        with pytest.raises(SettingError, match="has 1 null rows"):
            producer.send_columns(holes, topic="t")


OFFSETS_THAT_LIE = pa.Array.from_buffers(
    pa.binary(), 2, [None, pa.py_buffer(b"\0\0\0\0\x09\0\0\0\x03\0\0\0"), pa.py_buffer(b"abc")]
)


@pytest.mark.parametrize(
    ("batch", "topic", "complaint"),
    [
        (
            {"value": [b"v", b"v" * 300]},
            "t",
            r"row 1: topic \"t\": a record of 300 bytes is larger than max.request.size",
        ),
        (
            {"value": [b"v"] * 2, "partition": pa.array([0, 3])},
            "t",
            "row 1: .* has 1 partitions; there is no partition 3",
        ),
        ({"value": [b"v"] * 2, "partition": pa.array([None, -1])}, "t", "row 1: partition -1: must be at least 0"),
        ({"value": [b"v"] * 2, "topic": pa.array(["t", None])}, None, "row 1: no topic"),
        (
            {"value": [b"v"] * 2, "timestamp": pa.array([1, -2_000_000], pa.timestamp("us"))},
            "t",
            "row 1: timestamp -2000 ms: must be at least 0",
        ),
        (
            {"value": [b"v"] * 2, "headers": pa.array([None, [{"key": None, "value": b""}]], HEADERS)},
            "t",
            "row 1: a header without key",
        ),
        ({"value": OFFSETS_THAT_LIE}, "t", "row 0: the array's offsets lead outside its data"),
    ],
)
def test_a_row_that_cannot_be_sent_is_named_and_none_is_sent(
    batch: dict[str, Any], topic: str | None, complaint: str
) -> None:
    with ScriptedBroker() as broker, Producer(broker.bootstrap_servers, {"max.request.size": 100}) as producer:
        with pytest.raises(RecordError, match=f"^{complaint}.*no row of the batch was sent$"):
            producer.send_columns(columns(**batch), topic=topic)
        producer.flush()
        assert broker.received == []


def test_full_memory_is_reported_with_how_many_rows_were_sent() -> None:
    settings = {**QUICK, **HELD, "buffer.memory": 2000, "batch.size": 1000, "max.block.ms": 1000}
    with ScriptedBroker([NOT_LEADER]) as broker:
        producer = Producer(broker.bootstrap_servers, settings)
        with pytest.raises(BufferFullError, match=r"buffer.memory=2000 stayed full.*; 2 of 3 rows were sent"):
            producer.send_columns(columns(value=[b"x" * 800] * 3), topic="t")
        with pytest.raises(DeliveryError):
            producer.close(0)


def test_the_producer_id_is_known_before_the_first_record() -> None:
    with ScriptedBroker([TOO_LARGE, 0]) as broker, Producer(broker.bootstrap_servers, QUICK) as producer:
        assert producer.producer_id() == producer.producer_id() == (1, 0)
        with pytest.raises(BrokerError):
            producer.send("t", b"x").result()
        assert producer.producer_id() == (2, 0)
        producer.send("t", b"y").result()
        assert broker.received[-1].producer_id == 2


def test_without_idempotence_or_broker_there_is_no_producer_id() -> None:
    plain, alone = Producer("127.0.0.1:1", {"acks": "1"}), Producer("127.0.0.1:1", {"max.block.ms": 50})
    with plain, pytest.raises(SettingError, match=r"enable.idempotence=false: must be true for a producer id"):
        plain.producer_id()
    with alone, pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1 within \d+ ms"):
        alone.producer_id()
    with pytest.raises(ClosedError, match="the producer is closed"):
        alone.producer_id()


def test_a_refused_topic_names_how_long_was_waited_not_how_long_might_have_been() -> None:
    with (
        ScriptedBroker(topic_error=ErrorCode.TOPIC_AUTHORIZATION_FAILED) as broker,
        Producer(broker.bootstrap_servers) as producer,
        pytest.raises(BrokerError) as refused,
    ):
        producer.send("t", b"x")
    waited = re.search(r"after (\d+) ms: TOPIC_AUTHORIZATION_FAILED", str(refused.value))
    assert waited is not None, str(refused.value)
    assert int(waited[1]) < 60_000


def test_a_batch_whose_fate_is_unknown_keeps_its_number_when_another_one_is_refused() -> None:
    slow = {**QUICK, "retry.backoff.ms": 500}
    with ScriptedBroker([LOST], further=[[TOO_LARGE]]) as broker:
        with Producer(broker.bootstrap_servers, slow) as producer:
            lost = producer.send("t", b"written", partition=0)
            wait_until(lambda: broker.received, within=60, what="the first batch to be written")
            with pytest.raises(BrokerError):
                producer.send("t", b"refused", partition=1).result()
            assert lost.result().offset == 0
            assert producer.send("t", b"next", partition=0).result().offset == 1
            assert producer.send("t", b"next", partition=1).result() is not None
        first, again, then = [one for one in broker.received if one.partition == 0]
        assert (first.producer_id, first.sequence) == (again.producer_id, again.sequence) == (1, 0)
        assert (then.producer_id, then.sequence) == (2, 0), "what was not sent before has the new identity"


def test_what_follows_a_refused_batch_is_sent_under_a_new_identity() -> None:
    with ScriptedBroker([0, TOO_LARGE]) as broker:
        with Producer(broker.bootstrap_servers, {**QUICK, "batch.size": 100}) as producer:
            producer.send("t", b"0" * 90).result()
            broker.responds_produce.clear()
            refused, *others = [producer.send("t", b"%d" % number * 90) for number in range(1, 5)]
            broker.responds_produce.set()
            with pytest.raises(BrokerError, match="MESSAGE_TOO_LARGE"):
                refused.result()
            assert [other.result().offset for other in others] == [1, 2, 3]
        log = [raw for _, _, raw in broker._log]
        assert [raw.count(b"%d" % number * 90) for raw, number in zip(log, (0, 2, 3, 4), strict=True)] == [1] * 4


def test_a_gap_that_the_broker_has_is_left_behind() -> None:
    """It has lost what it knew of the producer."""
    with ScriptedBroker() as broker, Producer(broker.bootstrap_servers, QUICK) as producer:
        producer.send("t", b"x").result()
        broker._sequences.clear()
        assert producer.send("t", b"y").result().offset == 1
        assert [(one.producer_id, one.sequence) for one in broker.received] == [(1, 0), (1, 1), (2, 0)]


def test_a_refused_identity_is_not_asked_for_without_pause() -> None:
    with (
        ScriptedBroker(faults={INIT_PRODUCER_ID: [CLUSTER_AUTHORIZATION_FAILED] * 100_000}) as broker,
        Producer(broker.bootstrap_servers, HELD) as producer,
        Producer(broker.bootstrap_servers, {"acks": "1"}) as other,
    ):
        with pytest.raises(BrokerError, match="CLUSTER_AUTHORIZATION_FAILED"):
            producer.producer_id()
        for _ in range(20):
            other.send("t", b"x").result()
        assert broker.requested[INIT_PRODUCER_ID] == 1
