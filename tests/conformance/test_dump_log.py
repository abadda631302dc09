"""`pybroker dump-log` shows what Kafka's own dump tool shows, of files that Kafka wrote, whole and damaged."""

from __future__ import annotations

import gzip
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import cramjam
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin import NewTopic as AdminTopic

from pybench.peers.kafka import Kafka
from pybroker.client.administration.admin import Admin
from pybroker.client.administration.topics import LATEST, NewTopic, TopicPartition
from pybroker.testing import Broker
from tests.conformance.dump_tool import Dumped, kafkas, ours
from tests.support import programs
from tests.support.batches import CONTROL, GZIP, SNAPPY, Batch, Record, batch_of
from tests.support.message_sets import message

pytestmark = pytest.mark.java

SEGMENT = "00000000000000000000"
SUFFIXES = {".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint"}
SETTINGS = {
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    # The records are old, and a pass of retention may come at any time.
    "log.retention.ms": "-1",
}
PLAIN_OPTIONS = [
    "",
    "--deep-iteration",
    "--print-data-log",
    "--print-data-log --skip-record-metadata",
    "--verify-index-only",
    "--index-sanity-check",
    "--max-bytes 3000",
    "--value-decoder-class org.apache.kafka.tools.api.StringDecoder --skip-record-metadata",
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log directory of a Kafka that had producers of every codec, transactions, and groups of both protocols."""
    programs.kafka_tools()
    directory = tmp_path_factory.mktemp("kafka")
    with Kafka(directory, SETTINGS) as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        dense = {"index.interval.bytes": "200"}
        created = admin.create_topics([AdminTopic("plain", 1, 1, config=dense), AdminTopic("txn", 1, 1, config=dense)])
        for future in created.values():
            future.result(60)
        _produce_plain(kafka.bootstrap_servers)
        _produce_transactions(kafka.bootstrap_servers)
        for protocol in ("classic", "consumer"):
            _consume(kafka.bootstrap_servers, protocol)
    return kafka.log_directory


def _produce_plain(servers: str) -> None:
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = confluent_kafka.Producer({"bootstrap.servers": servers, "compression.type": codec, "linger.ms": 5})
        for n in range(20):
            producer.produce(
                "plain",
                key=f"k{n}" if n % 3 else None,
                value=f"ü{n} " * 20 if n % 4 else None,
                headers=[("h", b"x"), ("g", None)] if n % 2 else None,
                timestamp=1_700_000_000_000 + n * 37,
            )
        assert producer.flush(60) == 0


def _produce_transactions(servers: str) -> None:
    """Three producers whose transactions overlap, committed and aborted in turns; one is left open."""
    made = [confluent_kafka.Producer({"bootstrap.servers": servers, "transactional.id": f"t{n}"}) for n in range(3)]
    for producer in made:
        producer.init_transactions(30)
    for turn in range(4):
        for number, producer in enumerate(made):
            producer.begin_transaction()
            for n in range(3):
                producer.produce("txn", value=f"{turn}-{number}-{n}")
            assert producer.flush(60) == 0
        for number, producer in enumerate(made):
            (producer.abort_transaction if (turn + number) % 2 else producer.commit_transaction)(30)
    made[0].begin_transaction()
    made[0].produce("txn", value="open")
    assert made[0].flush(60) == 0


def _consume(servers: str, protocol: str) -> None:
    settings = {"bootstrap.servers": servers, "group.id": protocol, "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({**settings, "group.protocol": protocol})
    consumer.subscribe(["plain"])
    while consumer.poll(60) is None:
        pass
    consumer.commit(asynchronous=False)
    consumer.close()


def _files(data: Path) -> str:
    return ",".join(sorted(str(path) for path in data.rglob("*") if path.suffix in SUFFIXES and path.is_file()))


def test_whole_files_are_shown_alike(data: Path, tmp_path: Path) -> None:
    runs = [[*options.split(), "--files", _files(data)] for options in PLAIN_OPTIONS]
    for run, theirs in zip(runs, kafkas(runs, tmp_path), strict=True):
        assert theirs.out.count("\n") > 100
        assert ours(run) == theirs, run


def test_the_records_of_internal_topics_are_shown_alike(data: Path, tmp_path: Path) -> None:
    runs = [
        ["--offsets-decoder", "--files", f"{data}/__consumer_offsets-0/{SEGMENT}.log"],
        ["--transaction-log-decoder", "--files", f"{data}/__transaction_state-0/{SEGMENT}.log"],
        ["--cluster-metadata-decoder", "--files", f"{data}/__cluster_metadata-0/{SEGMENT}.log"],
        ["--cluster-metadata-decoder", "--files", f"{data}/bootstrap.checkpoint"],
        # Records of other topics: each is skipped with words, and ends nothing.
        ["--cluster-metadata-decoder", "--files", f"{data}/plain-0/{SEGMENT}.log"],
        [
            "--transaction-log-decoder",
            "--skip-record-metadata",
            "--files",
            f"{data}/__consumer_offsets-0/{SEGMENT}.log",
        ],
    ]
    for run, theirs in zip(runs, kafkas(runs, tmp_path), strict=True):
        assert ours(run) == theirs, run


def _committed(servers: str, topic: str) -> list[str]:
    """What a reader of committed records sees, up to the last stable offset."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "r",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    values: list[str] = []
    while True:
        polled = consumer.poll(60)
        assert polled is not None
        if polled.error() is not None:
            assert polled.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
            consumer.close()
            return values
        values.append(polled.value().decode())


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "recovered"])
def test_a_log_of_transactions_that_kafka_wrote_is_read_as_it_was_committed(
    data: Path, tmp_path: Path, clean: bool
) -> None:
    """The open transaction and the aborted ones stay hidden; recovery makes the same index that Kafka made."""
    theirs, mine = data / "txn-0", tmp_path / "txn-0"
    with Broker(directory=tmp_path) as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("txn", 1)])
    for path in theirs.iterdir():
        if path.name.startswith(SEGMENT) and (clean or path.suffix == ".log"):
            shutil.copy(path, mine / path.name)
    if not clean:
        (tmp_path / ".kafka_cleanshutdown").unlink()
    with Broker(directory=tmp_path) as broker, Admin(broker.bootstrap_servers) as admin:
        values = _committed(broker.bootstrap_servers, "txn")
        end = admin.list_offsets({TopicPartition("txn", 0): LATEST})[TopicPartition("txn", 0)].offset
    expected = [
        f"{turn}-{number}-{n}" for turn in range(4) for number in range(3) if (turn + number) % 2 == 0 for n in range(3)
    ]
    assert sorted(values) == sorted(expected)
    assert end == 4 * 3 * 4 + 1
    assert (mine / f"{SEGMENT}.txnindex").read_bytes() == (theirs / f"{SEGMENT}.txnindex").read_bytes()


def _damaged(data: Path, directory: Path) -> Iterator[str]:
    """Files that are damaged each in its own way, by what is left of the right ones."""
    txn, plain = ((data / f"{topic}-0/{SEGMENT}.log").read_bytes() for topic in ("txn", "plain"))
    first = 12 + struct.unpack_from(">i", txn, 8)[0]

    def file(name: str, suffix: str, content: bytes, **beside: bytes) -> str:
        (directory / name).mkdir()
        for kind, other in beside.items():
            (directory / name / f"{SEGMENT}.{kind}").write_bytes(other)
        path = directory / name / f"{SEGMENT}{suffix}"
        path.write_bytes(content)
        return str(path)

    def number(at: int, value: int, width: str = "i", of: bytes = txn) -> bytes:
        packed = struct.pack(f">{width}", value)
        return of[:at] + packed + of[at + len(packed) :]

    yield from (file(f"cut-{n}", ".log", txn[:n]) for n in (0, 10, 17, first - 1, first, first + 17, first + 30))
    yield file("zeros-behind", ".log", txn + bytes(100))
    yield file("checksum", ".log", number(first + 17, 0))
    yield from (file(f"size-{n}", ".log", number(first + 8, n)) for n in (-5, 0, 13, 2**31 - 1))
    yield file("codec", ".log", number(first + 21, 0x17, "h"))
    yield from (file(f"magic-{n}", ".log", number(first + 16, n, "b")) for n in (3, 127))
    yield from (file(f"count-{n}", ".log", number(first + 57, n)) for n in (-7, 0, 1, 7))
    yield from (file(f"record-size-{n}", ".log", number(first + 61, n, "b")) for n in (2, 126))
    yield from (file(f"key-size-{n}", ".log", number(first + 65, n, "b")) for n in (3, 124))
    yield file("headers", ".log", number(first + 72, 1, "b"))
    deflated = plain.index(b"\x1f\x8b")
    yield file("deflated", ".log", number(deflated + 12, -1, "q", plain))
    index, times, aborted = (
        (data / f"txn-0/{SEGMENT}{kind}").read_bytes() for kind in (".index", ".timeindex", ".txnindex")
    )
    for name, content in {
        "empty": b"",
        "torn": index[:-3],
        "zeros": index + bytes(16),
        "wrong-offset": number(0, 3, of=index),
        "position-beyond": number(4, len(txn) + 50, of=index),
        "position-negative": number(4, -50, of=index),
        "position-inside": number(4, 50, of=index),
        "last-below-base": index + struct.pack(">ii", -4, 3),
    }.items():
        yield file(f"index-{name}", ".index", content, log=txn)
    yield file("index-without-log", ".index", index)
    for name, content in {
        "empty": b"",
        "torn": times[:-3],
        "zeros": times + bytes(24),
        "wrong-timestamp": number(0, 5, "q", times),
        "wrong-offset": number(8, 1, of=times),
        "offset-beyond": number(8, 10_000, of=times),
        "disorder": times[12:24] + times[:12] + times[24:],
        "descending": times + struct.pack(">qi", 5, 30),
    }.items():
        yield file(f"times-{name}", ".timeindex", content, log=txn, index=index)
    for name, content in {"empty": b"", "torn": aborted[:-3], "version": number(34, 1, "h", aborted)}.items():
        yield file(f"aborted-{name}", ".txnindex", content)
    snapshot = max((path.read_bytes() for path in data.rglob("*.snapshot")), key=len)
    for name, content in {
        "whole": snapshot,
        "torn": snapshot[:-3],
        "version": number(0, 2, "h", snapshot),
        "checksum": number(2, 7, of=snapshot),
        "empty": b"",
        "short": snapshot[:4],
    }.items():
        yield file(f"producers-{name}", ".snapshot", content)
    yield file("unknown", ".foo", b"")
    yield file("checkpoint-of-no-name", ".checkpoint", txn)
    yield from (f"{directory}/missing/{SEGMENT}{kind}" for kind in (".log", ".snapshot", ".txnindex"))


def test_damaged_files_are_shown_alike_up_to_the_same_words(data: Path, tmp_path: Path) -> None:
    damaged = list(_damaged(data, tmp_path))
    runs = [
        [*options, "--files", name]
        for name in damaged
        for options in ([], ["--deep-iteration"], ["--index-sanity-check"], ["--verify-index-only"])
    ]
    theirs = kafkas(runs, tmp_path)
    assert len({run.status for run in theirs}) == 2, "some damage ends the dump, some does not"
    differing = [(run, ours(run), their) for run, their in zip(runs, theirs, strict=True) if ours(run) != their]
    assert differing == []


def _control_records() -> Batch:
    types = [(2, b"\0\0" + struct.pack(">i", 3) + b"\1\1\0"), (5, b"\0\0\0\1\0"), (9, b"\0\0")]
    records = tuple(Record(value, key=struct.pack(">hh", 0, kind)) for kind, value in types)
    return Batch(records, attributes=CONTROL, base_timestamp=1000)


def test_batches_that_kafka_seldom_writes_are_shown_alike(tmp_path: Path) -> None:
    """Control records of the quorum, append times, delete horizons, holes as compaction leaves them, odd names."""
    programs.kafka_tools()
    holes = (Record(b"a", offset_delta=2), Record(b"\xff\xfe", key=b"\xc3", offset_delta=7))
    batches: list[Any] = [
        _control_records().encode(),
        batch_of(b"stamped", base_offset=10, attributes=0x08, base_timestamp=5, max_timestamp=77),
        batch_of(b"horizon", base_offset=20, attributes=0x40, base_timestamp=99),
        Batch(holes, base_offset=30, last_offset_delta=9, base_timestamp=1, count=2).encode(),
        Batch((), base_offset=50, last_offset_delta=4, base_timestamp=1, section=b"").encode(),
        Batch((Record(None, headers=(("ü,", b"1"), ("", None))),), base_offset=60, base_timestamp=1).encode(),
        batch_of(
            b"x", b"y", base_offset=70, base_timestamp=1, producer_id=7, producer_epoch=3, base_sequence=2**31 - 1
        ),
    ]
    (tmp_path / f"{SEGMENT}.log").write_bytes(b"".join(batches))
    runs = [[*options.split(), "--files", f"{tmp_path}/{SEGMENT}.log"] for options in PLAIN_OPTIONS]
    for run, theirs in zip(runs, kafkas(runs, tmp_path), strict=True):
        found: Dumped = ours(run)
        assert found == theirs, run


def _old_messages() -> bytes:
    inner = [b"".join(message(n, magic, b"in%d" % n, timestamp=50 + n) for n in range(3)) for magic in (0, 1)]
    messages = [
        message(0, 0, b"plain", key=b"k"),
        message(1, 1, None, timestamp=5),
        message(2, 1, b"stamped", attributes=8),
        message(5, 1, gzip.compress(inner[1]), attributes=GZIP),
        message(8, 1, bytes(cramjam.snappy.compress_raw(inner[1])), attributes=SNAPPY, timestamp=60),
        message(11, 1, gzip.compress(inner[1]), attributes=8 | GZIP, timestamp=99),
        message(12, 1, b"wrong").replace(b"wrong", b"wronG"),
        message(2, 0, gzip.compress(inner[0]), attributes=GZIP),
        batch_of(b"new", base_offset=20, base_timestamp=1),
    ]
    return b"".join(messages)


def test_messages_of_the_formats_before_batches_are_shown_alike(tmp_path: Path) -> None:
    programs.kafka_tools()
    path = tmp_path / f"{SEGMENT}.log"
    path.write_bytes(_old_messages())
    path.with_suffix(".index").write_bytes(
        struct.pack(">ii", 1, 0) + struct.pack(">ii", 2, len(message(0, 0, b"plainx")))
    )
    path.with_suffix(".timeindex").write_bytes(struct.pack(">qi", 5, 1) + struct.pack(">qi", 77, 2))
    files = ",".join(str(path.with_suffix(suffix)) for suffix in (".log", ".timeindex"))
    runs = [[*options.split(), "--files", files] for options in PLAIN_OPTIONS]
    for run, theirs in zip(runs, kafkas(runs, tmp_path), strict=True):
        assert ours(run) == theirs, run
