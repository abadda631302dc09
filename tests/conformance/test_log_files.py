"""The files in a log directory are Kafka's: names, layout, and what Kafka's own dump tool makes of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.conftest import Server, Topic
from tests.conformance.test_produce import compressed
from tests.support import kafka_tools, programs
from tests.support.batches import GZIP, LZ4, SNAPPY, ZSTD, Batch, Record, batch_of
from tests.support.conditions import wait_until
from tests.support.wire import Wire, produce, produced

SEGMENT = "00000000000000000000"
BATCHES = 300


@pytest.fixture
def partition(server: Server, wire: Wire, create: Callable[..., Topic]) -> Path:
    """The directory of a partition with batches of every codec, of idempotent and plain producers, in one segment."""
    topic = create()
    number = wire.call("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=60_000).producer_id
    sending = [compressed(codec).encode() for codec in (GZIP, SNAPPY, LZ4, ZSTD)] + [
        Batch(
            (Record(b"v" * 300, key=b"k", headers=(("h", b"x"),)), Record(None, key=b"k")),
            producer_id=number,
            producer_epoch=0,
            base_sequence=2 * index,
        ).encode()
        for index in range(BATCHES)
    ]
    for batch in [*sending, batch_of(b"last")]:
        assert produced(wire.query(produce(topic.name, batch))).error_code == 0
    return server.log_directory / f"{topic.name}-0"


def test_a_partitions_directory_has_kafkas_names(partition: Path) -> None:
    expected = {f"{SEGMENT}.log", f"{SEGMENT}.index", f"{SEGMENT}.timeindex", "partition.metadata"}
    expected |= {"leader-epoch-checkpoint"}
    wait_until(lambda: expected <= {path.name for path in partition.iterdir()}, within=60, what=f"{expected}")
    assert {path.name for path in partition.iterdir()} <= expected | {f"{SEGMENT}.snapshot", f"{SEGMENT}.txnindex"}


def test_the_partition_metadata_is_kafkas_text(partition: Path) -> None:
    wait_until((partition / "partition.metadata").exists, within=60, what="partition.metadata")
    assert re.fullmatch(r"version: 0\ntopic_id: [\w-]{22}\n?", (partition / "partition.metadata").read_text())


@pytest.mark.java
def test_kafkas_dump_tool_finds_every_batch_valid(partition: Path) -> None:
    programs.kafka_tools()
    segment = partition / f"{SEGMENT}.log"
    dumped = kafka_tools.run("dump-log", "--deep-iteration", "--print-data-log", "--files", str(segment))
    assert dumped.returncode == 0, dumped.stderr
    batches = [line for line in dumped.stdout.splitlines() if line.startswith("baseOffset:")]
    assert len(batches) == 4 + BATCHES + 1
    assert [line for line in batches if "isvalid: true" not in line] == []
    assert dumped.stdout.count("| offset:") == 4 * 3 + BATCHES * 2 + 1
    assert "Found" not in dumped.stdout


@pytest.mark.java
def test_kafkas_dump_tool_finds_the_indexes_sane(partition: Path) -> None:
    programs.kafka_tools()
    files = ",".join(str(partition / f"{SEGMENT}.{kind}") for kind in ("index", "timeindex"))
    dumped = kafka_tools.run("dump-log", "--verify-index-only", "--files", files)
    assert dumped.returncode == 0, dumped.stderr
    for complaint in ("Mismatches", "Indexed offset", "not found", "Found timestamp mismatch", "out of order"):
        assert complaint not in dumped.stdout, dumped.stdout
