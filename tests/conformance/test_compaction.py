"""Compacted topics: what a real client reads, and what Kafka's dump tool makes of cleaned segments.

A broker of its own: the server of the other tests waits for 15 s between two checks, as Kafka does.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import confluent_kafka.admin
import kafka
import pytest

from pybroker.storage.log_dirs.checkpoint import CLEANED_OFFSETS, read_checkpoint
from pybroker.testing import Broker
from tests.support import kafka_tools, programs
from tests.support.conditions import wait_until

pytestmark = pytest.mark.one_and_three

PATIENCE_SECONDS = 60
KEYS, ROUNDS = 50, 40
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "200",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "100000",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A broker whose cleaner looks ten times a second."""
    with Broker(log_cleaner_backoff_ms=100) as made:
        yield made


def create(broker: Broker, topic: str, **settings: str) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    config = {**COMPACTED, **{key.replace("_", "."): value for key, value in settings.items()}}
    admin.create_topics([confluent_kafka.admin.NewTopic(topic, 1, -1, config=config)])[topic].result(60)


def write(broker: Broker, topic: str, codec: str) -> dict[bytes, bytes | None]:
    """Write each key many times, some of them deleted at last; the state that is left."""
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "compression.type": codec,
            "enable.idempotence": True,
            "batch.num.messages": 37,
        }
    )
    state: dict[bytes, bytes | None] = {}
    for turn in range(ROUNDS):
        for number in range(KEYS):
            key = b"key-%d" % (number * 7919 % KEYS)
            value = (
                None if number % 5 == 0 and turn >= ROUNDS - 3 else b"value-%d-%d" % (turn, number) * (number % 7 + 1)
            )
            producer.produce(topic, value, key)
            state[key] = value
    assert producer.flush(PATIENCE_SECONDS) == 0
    return state


def is_clean(broker: Broker, topic: str) -> bool:
    """Whether everything that was written is below the cleaner's checkpoint."""
    return read_checkpoint(Path(broker.directory) / CLEANED_OFFSETS).get((topic, 0), 0) >= KEYS * ROUNDS


def read(broker: Broker, topic: str) -> list[tuple[int, bytes, bytes | None]]:
    """Every record as confluent-kafka sees it: offset, key, value."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "unused", "enable.auto.commit": False}
    )
    end = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, 0), timeout=PATIENCE_SECONDS)[1]
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    found: list[tuple[int, bytes, bytes | None]] = []
    try:
        while consumer.position([confluent_kafka.TopicPartition(topic, 0)])[0].offset < end:
            for got in consumer.consume(1000, 0.2):
                assert got.error() is None
                found.append((got.offset(), got.key(), got.value()))
    finally:
        consumer.close()
    return found


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_client_reads_the_last_record_of_each_key(broker: Broker, codec: str) -> None:
    topic = f"compacted-{codec}"
    create(broker, topic)
    state = write(broker, topic, codec)
    wait_until(lambda: is_clean(broker, topic), within=PATIENCE_SECONDS, what=f"{topic} is compacted")
    found = read(broker, topic)
    assert {key: value for _, key, value in found} == state
    assert len(found) == KEYS, "each key once; tombstones stay for delete.retention.ms"
    assert [offset for offset, _, _ in found] == sorted(offset for offset, _, _ in found)
    assert found[-1][0] == KEYS * ROUNDS - 1, "offsets are what they were"


def test_kafka_python_reads_it_too(broker: Broker) -> None:
    create(broker, "compacted")
    state = write(broker, "compacted", "lz4")
    wait_until(lambda: is_clean(broker, "compacted"), within=PATIENCE_SECONDS, what="it is compacted")
    consumer = kafka.KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest")
    partition = kafka.TopicPartition("compacted", 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    found = {}
    try:
        while consumer.position(partition) < KEYS * ROUNDS:
            for records in consumer.poll(timeout_ms=200).values():
                found.update({record.key: record.value for record in records})
    finally:
        consumer.close()
    assert found == state


def test_tombstones_go_after_their_time(broker: Broker) -> None:
    create(broker, "short", delete_retention_ms="100")
    state = write(broker, "short", "none")
    living = {key: value for key, value in state.items() if value is not None}
    wait_until(lambda: is_clean(broker, "short"), within=PATIENCE_SECONDS, what="it is compacted")
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})

    def is_removed() -> bool:
        # A log is worth a pass when something in it is dirty.
        producer.produce("short", b"x", b"another")
        producer.flush(PATIENCE_SECONDS)
        found = {key: value for _, key, value in read(broker, "short")}
        found.pop(b"another")
        return found == living

    wait_until(is_removed, within=PATIENCE_SECONDS, what="tombstones are gone")


@pytest.mark.java
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_kafkas_dump_tool_finds_cleaned_segments_valid(broker: Broker, codec: str) -> None:
    programs.kafka_tools()
    topic = f"dumped-{codec}"
    create(broker, topic)
    write(broker, topic, codec)
    wait_until(lambda: is_clean(broker, topic), within=PATIENCE_SECONDS, what=f"{topic} is compacted")
    segments = sorted((Path(broker.directory) / f"{topic}-0").glob("*.log"))[:-1]
    dumped = kafka_tools.run(
        "dump-log", "--deep-iteration", "--print-data-log", "--files", ",".join(map(str, segments))
    )
    assert dumped.returncode == 0, dumped.stderr
    batches = [line for line in dumped.stdout.splitlines() if line.startswith("baseOffset:")]
    assert batches
    assert [line for line in batches if "isvalid: true" not in line] == []
    assert dumped.stdout.count("| offset:") == KEYS
    assert "deleteHorizonMs: OptionalLong[" in dumped.stdout
    indexes = [str(path.with_suffix(suffix)) for path in segments for suffix in (".index", ".timeindex")]
    dumped = kafka_tools.run("dump-log", "--verify-index-only", "--files", ",".join(indexes))
    assert dumped.returncode == 0, dumped.stderr
    for complaint in ("Mismatches", "Indexed offset", "not found", "Found timestamp mismatch", "out of order"):
        assert complaint not in dumped.stdout, dumped.stdout


def test_the_command_shows_a_clean_log(broker: Broker) -> None:
    create(broker, "shown")
    write(broker, "shown", "none")
    wait_until(lambda: is_clean(broker, "shown"), within=PATIENCE_SECONDS, what="it is compacted")
    command = [str(Path(sys.executable).with_name("pybroker")), "log-cleaner", "--log-dirs", str(broker.directory)]
    shown = subprocess.run([*command, "--topic-list", "shown"], capture_output=True, text=True, check=True).stdout
    head, row = (line.split() for line in shown.splitlines())
    cells = dict(zip(head, row, strict=True))
    assert (cells["STATE"], cells["DIRTY-BYTES"], cells["FIRST-DIRTY-OFFSET"]) == ("cleaned", "0", str(KEYS * ROUNDS))
