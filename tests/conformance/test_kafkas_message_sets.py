"""Message sets of v0 and v1 as the classes in Kafka's own jar write and read them.

What is not plain in them: wrappers, snappy in xerial's framing, and the lz4 frames whose checksum v0 computes over the
wrong bytes (KAFKA-3160).
"""

from __future__ import annotations

import base64
import random
import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from pybroker.testing import Broker
from tests.conformance.conftest import AGAINST_KAFKA, Topic, leads_all
from tests.conformance.test_old_formats import old_fetch, old_produce
from tests.conformance.test_produce import NOW
from tests.support import java_oracle
from tests.support.conditions import wait_until
from tests.support.java_oracle import JavaOracle
from tests.support.wire import Wire, fetch, fetched

pytestmark = [
    pytest.mark.java,
    pytest.mark.skipif(AGAINST_KAFKA, reason="Kafka 4 has dropped the versions that carry such sets"),
]

CODECS = ("none", "gzip", "snappy", "lz4")
KINDS = [(magic, codec) for magic in (0, 1) for codec in CODECS]
CURRENT = 12
"""A version of Fetch that gives what is stored as it is."""
SNAPPY_BLOCK, LZ4_BLOCK = 32 << 10, 64 << 10
LZ4_STORED = 1 << 31


class Record(NamedTuple):
    """A record; without a time where its format has none."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


class RecordBatch(NamedTuple):
    """A batch or wrapper, or a message that stands alone."""

    magic: int
    codec: str
    records: list[Record]


def records(seed: str, first: int = 0) -> list[Record]:
    """Some 250 KiB of records, here and there without key or value, some of them noise that no codec makes smaller."""
    dice = random.Random(seed)
    made = []
    for offset in range(first, first + 120):
        key = None if dice.random() < 0.1 else b"key-%d" % dice.randrange(50)
        size = dice.choice([0, 1, 100, 1000, 5000])
        value = dice.choice([None, dice.randbytes(size), b"value-%d " % offset * (size // 8)])
        made.append(Record(offset, NOW - dice.randrange(10_000), key, value))
    noise = Record(first + 120, NOW, b"noise", dice.randbytes(2 * LZ4_BLOCK))
    return [*made, noise]


def timed(magic: int, content: list[Record]) -> list[Record]:
    """What is left of records in a format: v0 has no times."""
    return content if magic else [one._replace(timestamp=-1) for one in content]


def written(oracle: JavaOracle, magic: int, codec: str, content: list[Record]) -> bytes:
    """A set of Kafka's making; within a wrapper of v1 offsets count from 0, and its own is the last one's."""
    fields = [[one.offset, one.timestamp, *map(_text, (one.key, one.value))] for one in content]
    return base64.b64decode(oracle.query("write", magic=magic, codec=codec, records=fields)["bytes"])


def read(oracle: JavaOracle, encoded: bytes) -> list[RecordBatch]:
    """What Kafka finds in whole batches and messages; it checks their checksums."""
    batches = oracle.query("read", bytes=base64.b64encode(encoded).decode())["batches"]
    return [
        RecordBatch(
            batch["magic"],
            batch["codec"],
            [Record(offset, timestamp, *map(_bytes, parts)) for offset, timestamp, *parts in batch["records"]],
        )
        for batch in batches
    ]


def _text(part: bytes | None) -> str | None:
    return None if part is None else base64.b64encode(part).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def packed(wrapper: bytes) -> bytes:
    """The value of the message in front, which has no key."""
    at = 26 if wrapper[16] else 18
    keyless, size = struct.unpack_from(">ii", wrapper, at)
    assert keyless == -1
    return wrapper[at + 8 : at + 8 + size]


def snappy_blocks(stream: bytes) -> int:
    """How many blocks there are in xerial's framing."""
    at, found = 16, 0
    while at < len(stream):
        at += 4 + int.from_bytes(stream[at : at + 4], "big")
        found += 1
    assert at == len(stream)
    return found


def lz4_blocks(frame: bytes) -> list[bool]:
    """Of each block in the frame whether it is stored as it was."""
    at, found = 7, []
    while length := int.from_bytes(frame[at : at + 4], "little"):
        found.append(length >= LZ4_STORED)
        at += 4 + length % LZ4_STORED
    assert at + 4 == len(frame)
    return found


@pytest.fixture(scope="module")
def oracle() -> Iterator[JavaOracle]:
    with java_oracle.running("MessageSetOracle") as running:
        yield running


def read_all(oracle: JavaOracle, wire: Wire, topic: str, version: int, end: int) -> list[RecordBatch]:
    """Fetch from the first offset on until the record before `end` has come."""
    found: list[RecordBatch] = []
    while (position := found[-1].records[-1].offset + 1 if found else 0) < end:
        if version < 4:
            error, encoded = old_fetch(wire, version, topic, position)
            assert error == 0
        else:
            encoded = bytes(fetched(wire.query(fetch(topic, position, version=version))).records)
        more = [batch for batch in read(oracle, encoded) if batch.records[-1].offset >= position]
        assert more, f"nothing at offset {position}"
        found += more
    return found


def joined(batches: list[RecordBatch]) -> list[Record]:
    return [one for batch in batches for one in batch.records]


@pytest.mark.parametrize("magic", [0, 1])
def test_the_sets_have_several_blocks_and_the_frames_of_v0_the_wrong_checksum(oracle: JavaOracle, magic: int) -> None:
    content = records("blocks")
    stream = packed(written(oracle, magic, "snappy", content))
    assert stream[:16] == b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01"
    assert snappy_blocks(stream) > 4
    frame = packed(written(oracle, magic, "lz4", content))
    assert frame[:7].hex() == "04224d186040" + ("82" if magic else "1a")
    assert set(lz4_blocks(frame)) == {False, True}


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("codec", CODECS)
def test_what_kafka_wrote_is_produced_and_kafka_reads_what_is_fetched(
    oracle: JavaOracle, wire: Wire, topic: Topic, version: int, codec: str
) -> None:
    magic = int(version == 2)
    content = timed(magic, records(f"{version}-{codec}"))
    error, offset, *_ = old_produce(wire, version, topic.name, written(oracle, magic, codec, content))
    assert (error, offset) == (0, 0)
    assert read_all(oracle, wire, topic.name, CURRENT, len(content)) == [(2, codec, content)]
    for old_version in range(4):
        given = int(old_version >= 2)
        batches = read_all(oracle, wire, topic.name, old_version, len(content))
        assert {(batch.magic, batch.codec) for batch in batches} == {(given, codec)}
        assert joined(batches) == timed(given, content)


class Stored(NamedTuple):
    """A broker that was started on logs that Kafka wrote, and by topic what is in them."""

    broker: Broker
    written: dict[str, list[Record]]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory, oracle: JavaOracle) -> Iterator[Stored]:
    directory = tmp_path_factory.mktemp("stored")
    names = {f"v{magic}-{codec}": (magic, codec) for magic, codec in KINDS}
    with Broker(directory=directory) as empty, Wire(empty.bootstrap_servers) as wire:
        topics = [{"name": name, "num_partitions": 1, "replication_factor": 1, "configs": []} for name in names]
        assert {one.error_code for one in wire.call("CreateTopics", 7, topics=topics, timeout_ms=20_000).topics} == {0}
        wait_until(lambda: all(leads_all(wire, name, 1) for name in names), within=60, what="the topics have leaders")
    held: dict[str, list[Record]] = {}
    for name, (magic, codec) in names.items():
        sets = [timed(magic, records(f"{name}-{first}", first)) for first in (0, 200)]
        held[name] = [*sets[0], *sets[1]]
        (home,) = directory.glob(f"{name}-0")
        for path in home.glob("0*"):
            path.unlink()
        segment = b"".join(written(oracle, magic, codec, content) for content in sets)
        (home / f"{0:020}.log").write_bytes(segment)
    (directory / ".kafka_cleanshutdown").unlink()
    with Broker(directory=directory) as broker:
        yield Stored(broker, held)


@pytest.mark.parametrize("version", [*range(4), CURRENT])
@pytest.mark.parametrize(("magic", "codec"), KINDS)
def test_what_kafka_stored_is_read_in_every_version(
    oracle: JavaOracle, stored: Stored, magic: int, codec: str, version: int
) -> None:
    content = stored.written[f"v{magic}-{codec}"]
    given = min(magic, int(version >= 2))
    with Wire(stored.broker.bootstrap_servers) as wire:
        batches = read_all(oracle, wire, f"v{magic}-{codec}", version, content[-1].offset + 1)
    assert {(batch.magic, batch.codec) for batch in batches} == {(given, codec)}
    assert joined(batches) == timed(given, content)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", ["snappy", "lz4"])
def test_frames_begin_as_kafkas_do(
    oracle: JavaOracle, wire: Wire, create: Callable[..., Topic], magic: int, codec: str
) -> None:
    """Kafka's reader overlooks a wrong checksum in v0; an old broker or client does not."""
    topic, content = create(), timed(magic, records("frames"))
    theirs = written(oracle, magic, codec, content)
    assert old_produce(wire, 2 if magic else 1, topic.name, theirs)[0] == 0
    error, ours = old_fetch(wire, 3 if magic else 1, topic.name)
    header = 7 if codec == "lz4" else 16
    assert (error, ours[16:18]) == (0, theirs[16:18])
    assert packed(ours)[:header] == packed(theirs)[:header]
    assert snappy_blocks(packed(ours)) > 4 if codec == "snappy" else set(lz4_blocks(packed(ours))) == {False, True}
