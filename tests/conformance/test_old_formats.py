"""Clients of before 0.11: message sets of v0 and v1 in Produce 0-2 and Fetch 0-3, which Kafka 4 no longer has.

Requests and answers are coded by aiokafka's protocol package, message sets by kafka-python's and aiokafka's legacy
records: neither shares anything with `pybroker`.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka.protocol import fetch as aio_fetch
from aiokafka.protocol import offset as aio_offset
from aiokafka.protocol import produce as aio_produce
from aiokafka.record.memory_records import MemoryRecords as AiokafkaRecords
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

from tests.conformance.conftest import AGAINST_KAFKA, Server, Topic
from tests.conformance.test_produce import NOW, compressed
from tests.support import programs
from tests.support.batches import GZIP, LZ4, SNAPPY, ZSTD, Batch, Record, batch_of, read_batches
from tests.support.wire import Wire, fetch, fetched, header, produce, produced

pytestmark = [
    pytest.mark.skipif(AGAINST_KAFKA, reason="Kafka 4 has dropped these versions"),
    pytest.mark.one_and_three,
]

CORRUPT_MESSAGE = 2
UNSUPPORTED_COMPRESSION_TYPE = 76
INVALID_TIMESTAMP = 32
INVALID_RECORD = 87
PLAIN = 0
OLD_CODECS = {"none": PLAIN, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4}
LATEST, EARLIEST = -1, -2

ReadRecord = tuple[int, int | None, bytes | None, bytes | None]
RECORDS = [
    (NOW - 3000, b"key", b"value" * 30),
    (NOW - 5000, None, b""),
    (NOW - 1000, b"", None),
    (NOW - 4000, b"k", b"value" * 31),
]


def message_set(magic: int, codec: int, records: list[tuple[int, bytes | None, bytes | None]] = RECORDS) -> bytes:
    """A set as kafka-python sends it to an old broker."""
    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 20)
    for offset, (timestamp, key, value) in enumerate(records):
        builder.append(offset, timestamp, key, value)
    return bytes(builder.build())


def query(wire: Wire, made: Any) -> Any:
    """Send a request of aiokafka's protocol and return the decoded answer."""
    wire.send_frame(header(made.API_KEY, made.API_VERSION, 7) + made.encode())
    frame = wire.read_frame()
    assert frame[:4] == b"\0\0\0\x07"
    return made.RESPONSE_TYPE.decode(frame[4:])


def old_produce(wire: Wire, version: int, topic: str, records: bytes) -> tuple[int, ...]:
    """Error code, offset and, from version 2 on, append time."""
    kind = getattr(aio_produce, f"ProduceRequest_v{version}")
    ((_, ((_, *results),)),) = query(wire, kind(-1, 10_000, [(topic, [(0, records)])])).topics
    return tuple(results)


def old_fetch(wire: Wire, version: int, topic: str, offset: int = 0, max_bytes: int = 1 << 20) -> tuple[int, bytes]:
    """Error code and records."""
    kind = getattr(aio_fetch, f"FetchRequest_v{version}")
    bounds = (1 << 20,) if version == 3 else ()
    response = query(wire, kind(-1, 0, 0, *bounds, [(topic, [(0, offset, max_bytes)])]))
    ((_, ((_, error, _, records),)),) = response.topics
    return error, bytes(records or b"")


def read(records: bytes) -> list[ReadRecord]:
    """What kafka-python and aiokafka read, which is the same; checksums hold. aiokafka has no lz4 in v0.

    A time of -1 is none: one of the two gives -1 in a wrapper of v1.
    """
    found: list[ReadRecord] = []
    batches = MemoryRecords(records)
    while (batch := batches.next_batch()) is not None:
        assert batch.validate_crc()
        found += [(one.offset, _time(one), one.key, one.value) for one in batch]
    if records[16:18] == bytes((0, LZ4)):
        return found
    again: list[ReadRecord] = []
    theirs = AiokafkaRecords(records)
    while (other := theirs.next_batch()) is not None:
        assert other.validate_crc()
        again += [(one.offset, _time(one), one.key, one.value) for one in other]
    assert again == found
    return found


def _time(one: Any) -> int | None:
    return None if one.timestamp == -1 else one.timestamp


def expected(
    magic: int, first: int = 0, records: list[tuple[int, bytes | None, bytes | None]] = RECORDS
) -> list[ReadRecord]:
    """What a client of a format is to read."""
    return [
        (first + place, timestamp if magic else None, key, value)
        for place, (timestamp, key, value) in enumerate(records)
    ]


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("codec", OLD_CODECS)
def test_a_set_of_an_old_producer_is_stored_as_a_batch_in_its_codec(
    wire: Wire, topic: Topic, version: int, codec: str
) -> None:
    magic = int(version == 2)
    for first in (0, 4):
        error, offset, *append_time = old_produce(wire, version, topic.name, message_set(magic, OLD_CODECS[codec]))
        assert (error, offset, append_time) == (0, first, [-1] * magic)
    records = fetched(wire.query(fetch(topic.name))).records
    batches = read_batches(records)
    assert [(batch.base_offset, batch.count, batch.attributes) for batch in batches] == [
        (first, 4, OLD_CODECS[codec]) for first in (0, 4)
    ]
    assert all(batch.crc_holds for batch in batches)
    assert read(records) == expected(magic) + expected(magic, 4)


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("codec", OLD_CODECS)
def test_an_old_consumer_gets_messages_of_its_format_in_the_codec_of_the_batch(
    wire: Wire, topic: Topic, version: int, codec: str
) -> None:
    magic = int(version >= 2)
    assert old_produce(wire, 2, topic.name, message_set(1, OLD_CODECS[codec]))[0] == 0
    assert produced(wire.query(produce(topic.name, batch_of(b"new")))).error_code == 0
    error, records = old_fetch(wire, version, topic.name)
    assert error == 0
    assert [records[16], records[17]] == [magic, OLD_CODECS[codec]]
    *old, new = read(records)
    assert old == expected(magic)
    assert (new[0], new[3]) == (4, b"new")


@pytest.mark.parametrize("version", range(4))
def test_an_old_consumer_gets_on_however_little_it_asks_for(wire: Wire, topic: Topic, version: int) -> None:
    for number in range(5):
        values = [b"%d-%d " % (number, place) * 50 for place in range(10)]
        assert produced(wire.query(produce(topic.name, batch_of(*values)))).error_code == 0
    seen: list[bytes | None] = []
    while len(seen) < 50:
        error, records = old_fetch(wire, version, topic.name, len(seen), 700)
        fresh = [one for one in read(records) if one[0] >= len(seen)]
        assert error == 0
        assert fresh, "the first message is given whole"
        seen += [value for *_, value in fresh]
    assert seen == [b"%d-%d " % (number, place) * 50 for number in range(5) for place in range(10)]


def test_zstd_is_not_for_old_clients(wire: Wire, create: Callable[..., Topic], topic_name: str) -> None:
    topic = create()
    packed = compressed(ZSTD).encode()
    assert produced(wire.query(produce(topic.name, batch_of(b"plain")))).error_code == 0
    assert produced(wire.query(produce(topic.name, packed, version=7))).error_code == 0
    for version in range(4):
        assert old_fetch(wire, version, topic.name, 1) == (UNSUPPORTED_COMPRESSION_TYPE, b"")
        error, records = old_fetch(wire, version, topic.name, 0)
        assert (error, [value for *_, value in read(records)]) == (0, [b"plain"])
    assert old_produce(wire, 2, topic.name, packed)[0] == UNSUPPORTED_COMPRESSION_TYPE


def test_broken_and_forbidden_messages_are_refused(wire: Wire, create: Callable[..., Topic], topic_name: str) -> None:
    topic = create()
    good = message_set(1, PLAIN)
    flipped = good[:40] + bytes([good[40] ^ 1]) + good[41:]
    two_wrappers = message_set(1, GZIP) * 2
    for wrong, code in ((flipped, CORRUPT_MESSAGE), (good[:-1], CORRUPT_MESSAGE), (two_wrappers, INVALID_RECORD)):
        assert old_produce(wire, 2, topic.name, wrong)[:2] == (code, -1)
    assert old_produce(wire, 2, topic.name, b"")[:2] == (0, -1)
    late = message_set(1, SNAPPY, [(NOW + 2 * 3_600_000, None, b"x")])
    assert old_produce(wire, 2, topic.name, late)[0] == INVALID_TIMESTAMP
    assert fetched(wire.query(fetch(topic.name))).high_watermark == 0
    keyed = create(f"{topic_name}-compacted", **{"cleanup.policy": "compact"})
    assert old_produce(wire, 0, keyed.name, message_set(0, LZ4))[0] == INVALID_RECORD
    assert old_produce(wire, 0, keyed.name, message_set(0, LZ4, [(0, b"k", b"v")]))[0] == 0


def test_log_append_time_is_returned_in_version_2_and_to_old_consumers(
    wire: Wire, create: Callable[..., Topic]
) -> None:
    topic = create(**{"message.timestamp.type": "LogAppendTime"})
    error, offset, append_time = old_produce(wire, 2, topic.name, message_set(1, GZIP))
    assert (error, offset) == (0, 0)
    assert abs(append_time - time.time() * 1000) < 60_000
    assert {time for _, time, *_ in read(old_fetch(wire, 2, topic.name)[1])} == {append_time}
    assert {time for _, time, *_ in read(fetched(wire.query(fetch(topic.name))).records)} == {append_time}


def test_the_offsets_that_version_0_of_list_offsets_returns(wire: Wire, topic: Topic) -> None:
    batch = Batch(tuple(Record(b"v", timestamp_delta=1000 * place) for place in range(6)), base_timestamp=NOW - 10_000)
    assert produced(wire.query(produce(topic.name, batch.encode()))).error_code == 0

    def offsets(timestamp: int, most: int = 1) -> list[int]:
        response = query(wire, aio_offset.OffsetRequest_v0(-1, [(topic.name, [(0, timestamp, most)])]))
        ((_, ((_, error, found),)),) = response.topics
        assert error == 0
        return list(found)

    assert (offsets(LATEST), offsets(EARLIEST)) == ([6], [0])
    assert (offsets(LATEST, 5), offsets(EARLIEST, 5), offsets(LATEST, 0)) == ([6, 0], [0], [])
    assert (offsets(NOW - 7000), offsets(NOW)) == ([3], [6])


@pytest.mark.kcat
@pytest.mark.parametrize("broker", ["0.8.2.2", "0.9.0.1", "0.10.0.0", "0.10.2.2"])
@pytest.mark.parametrize("codec", OLD_CODECS)
def test_librdkafka_that_takes_the_broker_for_an_old_one_reads_back_what_it_wrote(
    server: Server, create: Callable[..., Topic], broker: str, codec: str
) -> None:
    topic = create()
    pinned = ["-X", "api.version.request=false", "-X", f"broker.version.fallback={broker}"]
    kcat = [programs.program("kcat"), "-b", server.bootstrap_servers, "-t", topic.name, "-p", "0", "-q", *pinned]
    lines = [b"%d %s" % (number, b"old and new " * (number % 13)) for number in range(20_000)]
    made = subprocess.run(
        [*kcat, "-P", "-z", codec], input=b"\n".join(lines) + b"\n", capture_output=True, timeout=60, check=False
    )
    assert (made.returncode, made.stderr) == (0, b"")
    got = subprocess.run(
        [*kcat, "-C", "-o", "beginning", "-e", "-f", "%o %s\\n"], capture_output=True, timeout=60, check=False
    )
    assert got.returncode == 0, got.stderr
    assert got.stdout == b"".join(b"%d %s\n" % (at, line) for at, line in enumerate(lines))
