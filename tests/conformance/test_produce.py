"""Produce: what is appended, what is refused, and with which code."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import cramjam
import lz4.frame
import pytest
from kafka.record.memory_records import MemoryRecords

from tests.conformance.conftest import AGAINST_KAFKA, Topic, leads_all
from tests.support.batches import (
    CONTROL,
    GZIP,
    LZ4,
    SNAPPY,
    TRANSACTIONAL,
    ZSTD,
    Batch,
    Record,
    batch_of,
    encode_record,
    read_batches,
)
from tests.support.conditions import wait_until
from tests.support.wire import Wire, fetch, fetched, produce, produced

pytestmark = pytest.mark.one_and_three

CORRUPT_MESSAGE = 2
UNKNOWN_TOPIC_OR_PARTITION = 3
MESSAGE_TOO_LARGE = 10
INVALID_TOPIC = 17
INVALID_REQUIRED_ACKS = 21
INVALID_TIMESTAMP = 32
OUT_OF_ORDER_SEQUENCE_NUMBER = 45
INVALID_PRODUCER_EPOCH = 47
UNSUPPORTED_COMPRESSION_TYPE = 76
INVALID_RECORD = 87
UNKNOWN_TOPIC_ID = 100

NOW = int(time.time() * 1000)


def producer_id(wire: Wire) -> tuple[int, int]:
    """A fresh producer's id and epoch."""
    given = wire.call("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=60_000)
    assert given.error_code == 0
    return given.producer_id, given.producer_epoch


def log_of(wire: Wire, topic: Topic) -> list[Any]:
    """Every batch of the topic's one partition."""
    return read_batches(fetched(wire.query(fetch(topic.name))).records or b"")


@pytest.mark.parametrize("version", range(3, 14))
def test_every_version_appends(wire: Wire, topic: Topic, version: int) -> None:
    first = produced(wire.query(produce(topic.name, batch_of(b"a", b"b"), version=version, topic_id=topic.id)))
    second = produced(wire.query(produce(topic.name, batch_of(b"c"), version=version, topic_id=topic.id)))
    assert (first.error_code, first.base_offset, first.log_append_time_ms) == (0, 0, -1)
    assert (second.error_code, second.base_offset) == (0, 2)
    assert [batch.values for batch in log_of(wire, topic)] == [[b"a", b"b"], [b"c"]]


def test_the_batch_in_the_log_is_the_one_sent_with_offset_and_epoch_set(wire: Wire, topic: Topic) -> None:
    sent = batch_of(b"a", b"b")
    wire.query(produce(topic.name, batch_of(b"before")))
    wire.query(produce(topic.name, sent))
    stored = log_of(wire, topic)[1]
    assert (stored.base_offset, stored.last_offset, stored.leader_epoch) == (1, 2, 0)
    assert stored.crc_holds
    assert stored.raw[16:] == sent[16:]


def test_acks_0_is_not_answered(wire: Wire, topic: Topic) -> None:
    wire.send(produce(topic.name, batch_of(b"quiet"), acks=0))
    wait_until(lambda: log_of(wire, topic), within=60, what="the record is committed")
    assert [batch.values for batch in log_of(wire, topic)] == [[b"quiet"]]


def test_answers_come_in_the_order_of_requests(wire: Wire, topic: Topic) -> None:
    requests = [produce(topic.name, batch_of(b"%d" % number)) for number in range(50)]
    ids = [wire.send(made) for made in requests]
    offsets = [produced(wire.receive(made, number)).base_offset for made, number in zip(requests, ids, strict=True)]
    assert offsets == list(range(50))


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_acks_is_one_of_three_values(wire: Wire, topic: Topic, acks: int) -> None:
    response = produced(wire.query(produce(topic.name, batch_of(b"a"), acks=acks)))
    assert response.error_code == INVALID_REQUIRED_ACKS
    assert log_of(wire, topic) == []


def test_an_unknown_topic_is_answered_by_name_and_by_id(wire: Wire, topic: Topic) -> None:
    by_name = produced(wire.query(produce("no-such-topic", batch_of(b"a"), version=12)))
    by_id = produced(wire.query(produce("", batch_of(b"a"), version=13, topic_id=uuid.uuid4())))
    by_partition = produced(wire.query(produce(topic.name, batch_of(b"a"), partition=7)))
    assert by_name.error_code == UNKNOWN_TOPIC_OR_PARTITION
    assert by_id.error_code == UNKNOWN_TOPIC_ID
    assert by_partition.error_code == UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
def test_nobody_produces_to_a_coordinators_topic(wire: Wire, name: str, acks: int) -> None:
    """What it loads is what it has written: a record of others would keep it from that, or move offsets."""
    wire.call("Metadata", 9, topics=[{"name": name}], allow_auto_topic_creation=True)
    wait_until(lambda: leads_all(wire, name, 1), within=60, what="the topic is there")
    for version in (3, 8, 9):
        response = produced(wire.query(produce(name, batch_of(b"x"), acks=acks, version=version)))
        assert (response.error_code, response.base_offset) == (INVALID_TOPIC, -1)
        if version >= 8:
            assert response.error_message == f"Cannot append to internal topic {name}"


def test_one_bad_partition_does_not_harm_the_others(wire: Wire, create: Callable[..., Topic]) -> None:
    topic = create(partitions=3)
    made = produce(topic.name, batch_of(b"a"))
    (data,) = made.topic_data
    data.partition_data = [
        produce(topic.name, records, partition=index).topic_data[0].partition_data[0]
        for index, records in enumerate((batch_of(b"good"), batch_of(b"bad", crc=1), batch_of(b"good too")))
    ]
    (responded,) = wire.query(made).responses
    codes = {part.index: part.error_code for part in responded.partition_responses}
    assert codes == {0: 0, 1: CORRUPT_MESSAGE, 2: 0}


TOO_FEW = Batch((Record(b"a"), Record(b"b")), count=3)
WRONG = {
    "a checksum that does not hold": (Batch(crc=1), CORRUPT_MESSAGE),
    "a batch that is cut short": (Batch(length=200), INVALID_RECORD),
    "a length that is negative": (Batch(length=-5), CORRUPT_MESSAGE),
    "a length smaller than a header": (Batch(length=12), CORRUPT_MESSAGE),
    "an old format where the new one is due": (Batch(magic=1), INVALID_RECORD),
    "a format that does not exist": (Batch(magic=3), CORRUPT_MESSAGE),
    "more records counted than there are": (TOO_FEW, INVALID_RECORD),
    "a count that does not fit the last offset": (Batch(last_offset_delta=5), INVALID_RECORD),
    "no record at all": (Batch((), section=b""), INVALID_RECORD),
    "a control batch of a client": (Batch(attributes=CONTROL), INVALID_RECORD),
    "a record that is longer than the batch": (
        Batch((Record(b"a"),), section=b"\xfe\x7f" + encode_record(Record(b"a"), 0)[1:]),
        INVALID_RECORD,
    ),
    "bytes after the last record": (
        Batch((Record(b"a"),), section=encode_record(Record(b"a"), 0) + b"rest"),
        INVALID_RECORD,
    ),
    "a time far in the future": (Batch(base_timestamp=NOW + 2 * 3_600_000), INVALID_TIMESTAMP),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_batch_is_refused_with_kafkas_code(wire: Wire, topic: Topic, what: str) -> None:
    batch, code = WRONG[what]
    response = produced(wire.query(produce(topic.name, batch.encode())))
    assert response.error_code == code, response
    assert response.base_offset == -1
    assert log_of(wire, topic) == []
    assert produced(wire.query(produce(topic.name, batch_of(b"fine")))).error_code == 0


#: Where pybroker is stricter or clearer than Kafka, which appends the first and answers -1 to the second.
OURS = {
    "offsets that do not count up from zero": (
        Batch((Record(b"a", offset_delta=0), Record(b"b", offset_delta=0))),
        INVALID_RECORD,
    ),
    "a codec that does not exist": (Batch(attributes=7), UNSUPPORTED_COMPRESSION_TYPE),
}


@pytest.mark.skipif(AGAINST_KAFKA, reason="a claim about pybroker")
@pytest.mark.parametrize("what", OURS)
def test_a_batch_that_no_reader_could_make_sense_of_is_refused(wire: Wire, topic: Topic, what: str) -> None:
    batch, code = OURS[what]
    response = produced(wire.query(produce(topic.name, batch.encode())))
    assert response.error_code == code, response
    assert log_of(wire, topic) == []


def test_two_batches_for_one_partition_are_refused(wire: Wire, topic: Topic) -> None:
    response = produced(wire.query(produce(topic.name, batch_of(b"a"), batch_of(b"b"))))
    assert response.error_code == INVALID_RECORD
    assert log_of(wire, topic) == []


def test_a_batch_over_max_message_bytes_is_too_large(wire: Wire, create: Callable[..., Topic]) -> None:
    topic = create(**{"max.message.bytes": "1000"})
    fits = batch_of(b"x" * (1000 - len(batch_of(b"")) - 2))
    assert len(fits) == 1000
    assert produced(wire.query(produce(topic.name, batch_of(b"x" * 1000)))).error_code == MESSAGE_TOO_LARGE
    assert produced(wire.query(produce(topic.name, fits))).error_code == 0


def test_log_append_time_overwrites_and_is_returned(wire: Wire, create: Callable[..., Topic]) -> None:
    topic = create(**{"message.timestamp.type": "LogAppendTime"})
    response = produced(wire.query(produce(topic.name, Batch(base_timestamp=1000).encode())))
    (stored,) = log_of(wire, topic)
    assert response.error_code == 0
    assert abs(response.log_append_time_ms - time.time() * 1000) < 60_000
    assert stored.max_timestamp == response.log_append_time_ms
    assert stored.attributes & 8
    assert stored.crc_holds


def test_a_record_without_key_is_refused_by_a_compacted_topic(wire: Wire, create: Callable[..., Topic]) -> None:
    topic = create(**{"cleanup.policy": "compact"})
    mixed = Batch((Record(b"a", key=b"k"), Record(b"b"), Record(b"c", key=b"k"), Record(b"d"))).encode()
    response = produced(wire.query(produce(topic.name, mixed)))
    assert response.error_code == INVALID_RECORD
    assert [error.batch_index for error in response.record_errors] == [1, 3]
    assert produced(wire.query(produce(topic.name, Batch((Record(b"a", key=b"k"),)).encode()))).error_code == 0


def compressed(codec: int) -> Batch:
    """A batch of three records, compressed."""
    records = tuple(Record(b"value-%d" % number * 20) for number in range(3))
    plain = b"".join(encode_record(record, index) for index, record in enumerate(records))
    packers: dict[int, Callable[[bytes], Any]] = {
        GZIP: cramjam.gzip.compress,
        SNAPPY: cramjam.snappy.compress_raw,
        LZ4: lambda data: lz4.frame.compress(data, block_linked=False),  # Kafka reads independent blocks only
        ZSTD: cramjam.zstd.compress,
    }
    return Batch(records, attributes=codec, section=bytes(packers[codec](plain)))


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_compressed_batch_is_stored_as_it_came(wire: Wire, topic: Topic, codec: int) -> None:
    sent = compressed(codec).encode()
    response = produced(wire.query(produce(topic.name, sent)))
    (stored,) = read_batches(fetched(wire.query(fetch(topic.name))).records)
    assert response.error_code == 0
    assert stored.raw[16:] == sent[16:]


def test_times_too_far_from_the_brokers_are_refused_one_by_one(wire: Wire, create: Callable[..., Topic]) -> None:
    topic = create(**{"message.timestamp.before.max.ms": "600000", "message.timestamp.after.max.ms": "600000"})
    minutes = (-11, 0, 11, 5)
    records = tuple(Record(b"v", timestamp_delta=60_000 * delta) for delta in minutes)
    response = produced(
        wire.query(produce(topic.name, Batch(records, base_timestamp=int(time.time() * 1000)).encode()))
    )
    assert response.error_code == INVALID_TIMESTAMP
    assert [error.batch_index for error in response.record_errors] == [0, 2]
    timeless = Batch((Record(b"v"),), base_timestamp=-1).encode()
    assert produced(wire.query(produce(topic.name, timeless))).error_code == 0
    assert [batch.max_timestamp for batch in log_of(wire, topic)] == [-1]


TOPIC_CODECS = {"uncompressed": 0, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}


@pytest.mark.parametrize("wanted", TOPIC_CODECS)
def test_a_topic_with_a_codec_stores_every_batch_in_it(wire: Wire, create: Callable[..., Topic], wanted: str) -> None:
    levels = {"compression.gzip.level": "5", "compression.lz4.level": "3", "compression.zstd.level": "7"}
    topic = create(**{"compression.type": wanted, **levels})
    who = producer_id(wire)
    sending = [compressed(codec) for codec in (GZIP, SNAPPY, LZ4, ZSTD)]
    sending.append(Batch(sending[0].records))
    for number, batch in enumerate(sending):
        identified = replace(batch, producer_id=who[0], producer_epoch=who[1], base_sequence=3 * number)
        response = produced(wire.query(produce(topic.name, identified.encode())))
        assert (response.error_code, response.base_offset) == (0, 3 * number)
    records = fetched(wire.query(fetch(topic.name))).records
    stored = read_batches(records)
    assert [(batch.attributes, batch.base_offset, batch.base_sequence) for batch in stored] == [
        (TOPIC_CODECS[wanted], 3 * number, 3 * number) for number in range(5)
    ]
    assert all(batch.crc_holds and batch.producer_id == who[0] for batch in stored)
    read, reader = [], MemoryRecords(records)
    while (batch_read := reader.next_batch()) is not None:
        read += [record.value for record in batch_read]
    assert read == [record.value for record in sending[0].records] * 5


@pytest.mark.skipif(AGAINST_KAFKA, reason="Kafka 4.3 gives zstd to clients that are older than it")
def test_a_topic_of_zstd_is_read_from_version_10_on(wire: Wire, create: Callable[..., Topic]) -> None:
    topic = create(**{"compression.type": "zstd"})
    assert produced(wire.query(produce(topic.name, batch_of(b"a"), version=3))).error_code == 0
    assert fetched(wire.query(fetch(topic.name, version=9))).error_code == UNSUPPORTED_COMPRESSION_TYPE
    (stored,) = read_batches(fetched(wire.query(fetch(topic.name, version=10))).records)
    assert stored.attributes == ZSTD


@pytest.mark.parametrize("size", [0, 5, 40])
def test_bytes_that_are_no_batch_are_no_record(wire: Wire, topic: Topic, size: int) -> None:
    response = produced(wire.query(produce(topic.name, bytes(range(200))[100:][:size])))
    assert response.error_code in ({INVALID_RECORD} if size < 17 else {INVALID_RECORD, CORRUPT_MESSAGE})
    assert log_of(wire, topic) == []


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_compressed_section_that_cannot_be_read_is_refused(wire: Wire, topic: Topic, codec: int) -> None:
    broken = Batch((Record(b"a"),), attributes=codec, section=b"\xff\xfe\xfd this is no compressed data").encode()
    response = produced(wire.query(produce(topic.name, broken)))
    assert response.error_code in {CORRUPT_MESSAGE, INVALID_RECORD, -1}
    assert log_of(wire, topic) == []


def test_zstd_needs_version_7(wire: Wire, topic: Topic) -> None:
    response = produced(wire.query(produce(topic.name, compressed(ZSTD).encode(), version=6)))
    assert response.error_code == UNSUPPORTED_COMPRESSION_TYPE


def sequenced(wire: Wire, topic: Topic, who: tuple[int, int], sequence: int, *values: bytes) -> Any:
    """Produce one batch of an idempotent producer."""
    batch = batch_of(*values, producer_id=who[0], producer_epoch=who[1], base_sequence=sequence)
    return produced(wire.query(produce(topic.name, batch)))


def test_a_batch_sent_again_is_appended_once(wire: Wire, topic: Topic) -> None:
    who = producer_id(wire)
    responses = [sequenced(wire, topic, who, sequence, b"a", b"b") for sequence in (0, 2, 4, 4, 2, 0)]
    assert [(response.error_code, response.base_offset) for response in responses] == [
        (0, 0),
        (0, 2),
        (0, 4),
        (0, 4),
        (0, 2),
        (0, 0),
    ]
    assert [batch.base_sequence for batch in log_of(wire, topic)] == [0, 2, 4]


def test_a_batch_of_old_records_is_appended_once_also_after_a_roll(wire: Wire, topic: Topic) -> None:
    number, epoch = producer_id(wire)
    who = {"producer_id": number, "producer_epoch": epoch, "base_sequence": 0}
    old = batch_of(b"a", base_timestamp=NOW - 20 * 86_400_000, **who)
    responses = [produced(wire.query(produce(topic.name, batch))) for batch in (old, batch_of(b"new"), old)]
    assert [(response.error_code, response.base_offset) for response in responses] == [(0, 0), (0, 1), (0, 0)]


def test_a_sequence_that_leaves_a_gap_is_out_of_order(wire: Wire, topic: Topic) -> None:
    who = producer_id(wire)
    sequenced(wire, topic, who, 0, b"a")
    refused = sequenced(wire, topic, who, 2, b"c")
    assert (refused.error_code, refused.log_start_offset) == (OUT_OF_ORDER_SEQUENCE_NUMBER, 0)
    assert sequenced(wire, topic, who, 1, b"b").error_code == 0


def test_a_new_producer_starts_at_zero_when_the_broker_knows_it(wire: Wire, topic: Topic) -> None:
    number, epoch = producer_id(wire)
    sequenced(wire, topic, (number, epoch), 0, b"a")
    assert sequenced(wire, topic, (number, epoch + 1), 5, b"x").error_code == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert sequenced(wire, topic, (number, epoch + 1), 0, b"b").error_code == 0
    assert sequenced(wire, topic, (number, epoch), 1, b"x").error_code == INVALID_PRODUCER_EPOCH


def test_a_batch_older_than_the_last_five_is_distinguished_from_a_new_one(wire: Wire, topic: Topic) -> None:
    who = producer_id(wire)
    for sequence in range(7):
        assert sequenced(wire, topic, who, sequence, b"a").error_code == 0
    assert sequenced(wire, topic, who, 2, b"a").error_code == 0, "the fifth from the end is still known"
    assert sequenced(wire, topic, who, 0, b"a").error_code == OUT_OF_ORDER_SEQUENCE_NUMBER
    assert len(log_of(wire, topic)) == 7


def test_sequences_wrap_after_the_largest_number(wire: Wire, topic: Topic) -> None:
    who = producer_id(wire)
    top = 2**31 - 1
    assert sequenced(wire, topic, who, top - 1, b"a", b"b").error_code == 0
    assert sequenced(wire, topic, who, 0, b"c").error_code == 0


def test_producers_ids_are_never_given_twice(wire: Wire) -> None:
    given = [producer_id(wire) for _ in range(50)]
    assert len({number for number, _epoch in given}) == 50
    assert {epoch for _number, epoch in given} == {0}


@pytest.mark.parametrize("attributes", [TRANSACTIONAL])
def test_a_transactional_batch_without_a_transaction_is_refused(wire: Wire, topic: Topic, attributes: int) -> None:
    number, epoch = producer_id(wire)
    batch = batch_of(b"a", attributes=attributes, producer_id=number, producer_epoch=epoch, base_sequence=0)
    response = produced(wire.query(produce(topic.name, batch)))
    assert response.error_code != 0
    assert log_of(wire, topic) == []
