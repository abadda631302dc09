"""Logs that another Kafka left, after compaction: of v0 and v1 messages, which become batches, and of transactions.

What readers of every age and Kafka's dump tool make of them, and that Kafka's own cleaner leaves the same batches.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from pybench.peers.kafka import Kafka
from pybroker.storage.errors import CorruptCheckpointError
from pybroker.storage.log_dirs.checkpoint import CLEANED_OFFSETS, read_checkpoint
from pybroker.testing import Broker
from tests.conformance.conftest import leads_all
from tests.conformance.dump_tool import kafkas, ours
from tests.conformance.test_old_formats import ReadRecord, old_fetch
from tests.conformance.test_old_formats import read as read_as_peers
from tests.conformance.transactions import Seen, see
from tests.support import programs
from tests.support.batches import (
    GZIP,
    LOG_APPEND_TIME,
    LZ4,
    SNAPPY,
    TRANSACTIONAL,
    Batch,
    ReadBatch,
    Record,
    end_marker,
    read_batches,
)
from tests.support.conditions import wait_until
from tests.support.message_sets import OldMessage, message_set
from tests.support.wire import Wire, fetch, fetched

PATIENCE_SECONDS = 60
SEGMENTS, SETS, SET_SIZE, KEYS = 5, 6, 4, 12
END = SEGMENTS * SETS * SET_SIZE
"""Offset of the only message of the last segment, which no cleaner touches."""
NOW = int(time.time() * 1000) - 600_000
"""Not so long ago that the last segment is due to be rolled."""
SETTINGS = {"log.cleaner.backoff.ms": "100", "log.cleaner.min.cleanable.ratio": "0.01"}


class Kind(NamedTuple):
    """How messages are stored: format, codec, and whether the broker's time stands in them."""

    magic: int
    codec: int
    append_time: bool = False


KINDS = {
    **{f"v{magic}-none": Kind(magic, 0) for magic in (0, 1)},
    **{f"v{magic}-gzip": Kind(magic, GZIP) for magic in (0, 1)},
    **{f"v{magic}-snappy": Kind(magic, SNAPPY) for magic in (0, 1)},
    **{f"v{magic}-lz4": Kind(magic, LZ4) for magic in (0, 1)},
    "v1-none-stamped": Kind(1, 0, append_time=True),
    "v1-gzip-stamped": Kind(1, GZIP, append_time=True),
}
"""By the name of the topic that has them."""
TRANSACTIONS = "transactions"
"""The topic that has those."""
NAMES = (*KINDS, TRANSACTIONS)


class Written(NamedTuple):
    """A batch of the topic of transactions."""

    base_offset: int
    data: bytes
    records: dict[int, tuple[bytes, bytes | None]]
    """By offset, key and value; none of a marker."""
    producer: int
    commits: bool | None = None
    """Of a marker."""


def transactions() -> list[Written]:
    """What three producers write to few keys in turns, in transactions that commit or abort; none is open at last."""
    dice, written, sequences, open_ones = random.Random(TRANSACTIONS), list[Written](), [0, 0, 0], set[int]()
    while (offset := written[-1].base_offset + max(1, len(written[-1].records)) if written else 0) < END - 10:
        producer = dice.randrange(3)
        if producer in open_ones and dice.random() < 0.4:
            open_ones.discard(producer)
            commits = dice.random() < 0.6
            written.append(_marker(offset, producer, commits))
            continue
        open_ones.add(producer)
        keys = [b"key-%d" % dice.randrange(KEYS) for _ in range(dice.randrange(1, 4))]
        values = [None if dice.random() < 0.1 else b"value-%d" % (offset + at) for at in range(len(keys))]
        made = Batch(
            tuple(Record(value, key) for value, key in zip(values, keys, strict=True)),
            base_offset=offset,
            leader_epoch=0,
            attributes=TRANSACTIONAL,
            base_timestamp=NOW + offset,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=sequences[producer],
        )
        sequences[producer] += len(keys)
        records = dict(enumerate(zip(keys, values, strict=True), offset))
        written.append(Written(offset, made.encode(), records, producer))
    for producer in sorted(open_ones):
        offset = written[-1].base_offset + max(1, len(written[-1].records))
        written.append(_marker(offset, producer, commits=True))
    plain = Batch((Record(b"last", b"end"),), base_offset=END, leader_epoch=0, base_timestamp=NOW + END)
    return [*written, Written(END, plain.encode(), {END: (b"end", b"last")}, -1)]


def _marker(offset: int, producer: int, commits: bool) -> Written:
    data = end_marker(producer, 0, 3, commit=commits, base_offset=offset, leader_epoch=0, base_timestamp=NOW + offset)
    return Written(offset, data, {}, producer, commits)


def committed_state() -> dict[bytes, bytes]:
    """Key and value of the last committed record of each key."""
    waiting: dict[int, dict[int, tuple[bytes, bytes | None]]] = {}
    committed: dict[int, tuple[bytes, bytes | None]] = {}
    for one in transactions():
        if one.producer < 0:
            committed |= one.records
        elif one.commits is None:
            waiting.setdefault(one.producer, {}).update(one.records)
        else:
            ended = waiting.pop(one.producer, {})
            committed |= ended if one.commits else {}
    last = dict(committed[offset] for offset in sorted(committed))
    return {key: value for key, value in last.items() if value is not None}


def sets(kind: Kind) -> list[list[OldMessage]]:
    """What is written, set by set: few keys again and again, deletions, and here and there a message without key."""
    dice = random.Random(str(kind))
    written = []
    for first in range(0, END, SET_SIZE):
        made = []
        for offset in range(first, first + SET_SIZE):
            key = None if dice.random() < 0.05 else b"key-%d" % dice.randrange(KEYS)
            value = None if dice.random() < 0.1 else b"value-%d " % offset * dice.randrange(1, 9)
            made.append(OldMessage(offset, key, value, NOW + dice.randrange(1000)))
        written.append(made)
    return [*written, [OldMessage(END, b"end", b"last", NOW)]]


def left_state(kind: Kind) -> list[ReadRecord]:
    """The last message of each key in the order of offsets; none of v0 has a time."""
    last = {one.key: one for some in sets(kind) for one in some if one.key is not None}
    time_of = {one.offset: place for place, some in enumerate(sets(kind)) for one in some}
    return [
        (one.offset, _shown_time(kind, one, time_of[one.offset]), one.key, one.value) for one in sorted(last.values())
    ]


def _shown_time(kind: Kind, one: OldMessage, place: int) -> int | None:
    if not kind.magic:
        return None
    return NOW + place if kind.append_time else one.timestamp


def write_log(directory: Path, kind: Kind) -> None:
    """Put segments of old messages where an empty log was, without indexes."""
    for path in directory.glob("0*"):
        path.unlink()
    for place, some in enumerate(sets(kind)):
        segment = directory / f"{place // SETS * SETS * SET_SIZE:020}.log"
        append_time = NOW + place if kind.append_time else None
        with segment.open("ab") as file:
            file.write(message_set(kind.magic, kind.codec, some, append_time=append_time))


def write_transactions(directory: Path) -> None:
    """Put segments of transactions where an empty log was, without indexes."""
    for path in directory.glob("0*"):
        path.unlink()
    segment, written = directory / f"{0:020}.log", transactions()
    for place, one in enumerate(written):
        if (place and place % (len(written) // SEGMENTS) == 0) or one is written[-1]:
            segment = directory / f"{one.base_offset:020}.log"
        with segment.open("ab") as file:
            file.write(one.data)


def create_topics(servers: str) -> None:
    config = [{"name": "cleanup.policy", "value": "compact"}]
    topics = [{"name": name, "num_partitions": 1, "replication_factor": 1, "configs": config} for name in NAMES]
    with Wire(servers) as wire:
        response = wire.call("CreateTopics", 7, topics=topics, timeout_ms=20_000)
        assert {topic.error_code for topic in response.topics} == {0}
        wait_until(lambda: all(leads_all(wire, name, 1) for name in NAMES), within=60, what="the topics have leaders")


def write_logs(directory: Path) -> None:
    """Replace the logs of all topics, and let the next start find out what is in them."""
    for name, kind in KINDS.items():
        write_log(directory / f"{name}-0", kind)
    write_transactions(directory / f"{TRANSACTIONS}-0")
    (directory / ".kafka_cleanshutdown").unlink()


def is_clean(directory: Path) -> bool:
    """Whether everything but the last segments is below the cleaner's checkpoint."""
    try:
        cleaned = read_checkpoint(directory / CLEANED_OFFSETS)
    except CorruptCheckpointError:  # Kafka makes it empty at first
        return False
    return all(cleaned.get((name, 0), 0) >= END for name in NAMES)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that has compacted the old logs."""
    directory = tmp_path_factory.mktemp("ours")
    with Broker(directory=directory) as empty:
        create_topics(empty.bootstrap_servers)
    write_logs(directory)
    with Broker(directory=directory, properties=SETTINGS) as broker:
        wait_until(lambda: is_clean(directory), within=PATIENCE_SECONDS, what="the old logs are compacted")
        yield broker


def segments_of(directory: Path, name: str) -> str:
    return ",".join(str(path) for path in sorted((directory / f"{name}-0").glob("*.log")))


def read_all(fetch_at: Callable[[int], bytes]) -> list[ReadRecord]:
    """Fetch from the first offset to behind the last, as kafka-python and aiokafka read it."""
    found: list[ReadRecord] = []
    while not found or found[-1][0] < END:
        position = found[-1][0] + 1 if found else 0
        more = [one for one in read_as_peers(fetch_at(position)) if one[0] >= position]
        assert more, f"nothing at offset {position}"
        found += more
    return found


@pytest.mark.parametrize("name", KINDS)
def test_the_last_message_of_each_key_is_left_in_a_batch_of_its_codec(broker: Broker, name: str) -> None:
    kind = KINDS[name]
    with Wire(broker.bootstrap_servers) as wire:
        records = bytes(fetched(wire.query(fetch(name))).records)
        found = read_all(lambda offset: bytes(fetched(wire.query(fetch(name, offset))).records))
    batches = read_batches(records)
    assert {batch.attributes & 7 for batch in batches} == {kind.codec}
    assert {bool(batch.attributes & LOG_APPEND_TIME) for batch in batches} == {kind.append_time}
    assert all(batch.crc_holds for batch in batches)
    assert found == left_state(kind)


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("name", KINDS)
def test_old_clients_read_it_in_every_version(broker: Broker, name: str, version: int) -> None:
    def fetch_at(offset: int) -> bytes:
        error, records = old_fetch(wire, version, name, offset)
        assert error == 0
        return records

    with Wire(broker.bootstrap_servers) as wire:
        found = read_all(fetch_at)
    expected = left_state(KINDS[name])
    if version < 2:  # its messages have no time
        expected = [(offset, None, key, value) for offset, _, key, value in expected]
    assert found == expected


def test_readers_of_what_is_committed_find_the_last_value_of_each_key(broker: Broker) -> None:
    batches, aborted, offset = list[ReadBatch](), dict[tuple[int, int], None](), 0
    with Wire(broker.bootstrap_servers) as wire:
        while offset <= END:  # a Fetch gives what one segment has
            seen = see(wire, TRANSACTIONS, offset=offset)
            batches += seen.batches
            aborted |= dict.fromkeys(seen.aborted or [])
            offset = batches[-1].last_offset + 1
    assert sorted(Seen(batches, [*aborted], offset, offset).committed) == sorted(committed_state().values())
    ended = {one.commits for one in transactions()}
    assert ended == {None, True, False}, "there are commits and aborts"
    assert len(batches) < len(transactions()) / 2


@pytest.mark.java
def test_kafkas_dump_tool_finds_it_valid_and_shows_what_ours_does(broker: Broker, tmp_path: Path) -> None:
    programs.kafka_tools()
    directory = Path(broker.directory)
    runs = [["--deep-iteration", "--print-data-log", "--files", segments_of(directory, name)] for name in KINDS]
    for kind, run, theirs in zip(KINDS.values(), runs, kafkas(runs, tmp_path), strict=True):
        mine = ours(run)
        assert (mine.status, mine.out) == (theirs.status, theirs.out) == (0, theirs.out), theirs.err
        # Kafka's tool reports file by file what compaction has left out, in the order of a hash table.
        assert sorted(mine.err.splitlines()) == sorted(theirs.err.splitlines())
        lines = theirs.out.splitlines()
        *batches, last = [line for line in lines if line.startswith(("baseOffset:", "offset:"))]
        assert all(" magic: 2 " in line and line.endswith("isvalid: true") for line in batches)
        assert f" magic: {kind.magic} " in last
        records = [line for line in lines if line.startswith("| offset:")]
        assert "isValid: true" in records[-1]
        assert shown(records) == [(offset, key, value) for offset, _, key, value in left_state(kind)]


@pytest.mark.java
@pytest.mark.timeout(600)
def test_kafkas_own_cleaner_leaves_the_same_batches(broker: Broker, tmp_path: Path) -> None:
    programs.kafka_tools()
    with Kafka(tmp_path, SETTINGS, ready_timeout_s=300) as kafka:
        create_topics(kafka.bootstrap_servers)
    write_logs(kafka.log_directory)
    with Kafka(tmp_path, SETTINGS, ready_timeout_s=300) as kafka:
        wait_until(lambda: is_clean(kafka.log_directory), within=2 * PATIENCE_SECONDS, what="Kafka has compacted them")
    kinds = [(name, KINDS.get(name, Kind(2, 0))) for name in NAMES for _ in range(2)]
    directories = [Path(broker.directory), kafka.log_directory] * len(NAMES)
    runs = [
        ["--deep-iteration", "--print-data-log", "--files", segments_of(directory, name)]
        for directory, (name, _) in zip(directories, kinds, strict=True)
    ]
    dumped = [comparable(kind, one.out) for (_, kind), one in zip(kinds, kafkas(runs, tmp_path), strict=True)]
    assert dict(zip(NAMES, dumped[::2], strict=True)) == dict(zip(NAMES, dumped[1::2], strict=True))
    assert {"COMMIT", "ABORT"} == {kind for line in dumped[-1] for kind in ("COMMIT", "ABORT") if kind in line}
    assert any("deleteHorizonMs: some" in line for lines in dumped for line in lines)


def comparable(kind: Kind, dump: str) -> list[str]:
    """The batches and records in a dump, but for what a clock or a compressor decides.

    That is when tombstones may go, checksums, and of compressed batches also places and sizes.
    """
    lines = [line for line in dump.splitlines() if line.startswith(("baseOffset:", "offset:", "| offset:"))]
    lines = [re.sub(r"deleteHorizonMs: OptionalLong\[\d+\]", "deleteHorizonMs: some", line) for line in lines]
    decided = r"\b(crc|position|size): \d+ ?" if kind.codec else r"\bcrc: \d+ ?"
    return [re.sub(decided, "", line) for line in lines]


def shown(lines: list[str]) -> list[tuple[int, bytes, bytes | None]]:
    """Offset, key and value of the records in a dump."""
    matches = (re.fullmatch(r"\| offset: (\d+) .* key: (\S+)(?: payload: (.*))?", line) for line in lines)
    return [
        (int(found[1]), found[2].encode(), None if found[3] is None else found[3].encode())
        for found in matches
        if found
    ]
