"""Logs that a crash left behind: torn, with wrong or missing indexes. What is whole is kept; what is torn is cut."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.batches import batch_of, read_batches
from tests.support.processes import BrokerProcess
from tests.support.wire import Wire, fetch, fetched, produce, produced

pytestmark = pytest.mark.process

BATCHES = 200
TOPIC = "torn"


def value(number: int) -> bytes:
    """The value of the record of that number."""
    return b"%04d" % number * 5000


def last_segment(broker: BrokerProcess) -> Path:
    """The active segment of the topic's one partition."""
    return max((broker.directory / f"{TOPIC}-0").glob("*.log"))


def values(wire: Wire) -> list[bytes | None]:
    """Every value of the topic, read from the beginning."""
    found: list[bytes | None] = []
    while True:
        part = fetched(wire.query(fetch(TOPIC, len(found), partition_max_bytes=1 << 24)))
        assert part.error_code == 0
        batches = read_batches(part.records or b"")
        if not batches:
            return found
        for batch in batches:
            assert batch.crc_holds
            assert batch.base_offset == len(found)
            found += batch.values


@pytest.fixture
def crashed(make_broker: Callable[..., BrokerProcess]) -> BrokerProcess:
    """A broker that was killed with 200 records of 20 kB in its log, in four segments."""
    broker = make_broker(log_segment_bytes=str(1 << 20), log_index_interval_bytes="256").start()
    with Wire(broker.bootstrap_servers) as wire:
        wire.call(
            "CreateTopics", 7, topics=[{"name": TOPIC, "num_partitions": 1, "replication_factor": 1}], timeout_ms=10_000
        )
        for number in range(BATCHES):
            assert produced(wire.query(produce(TOPIC, batch_of(value(number))))).error_code == 0
    broker.kill()
    return broker


def test_a_killed_brokers_log_is_whole(crashed: BrokerProcess) -> None:
    crashed.start()
    with Wire(crashed.bootstrap_servers) as wire:
        assert values(wire) == [value(number) for number in range(BATCHES)]


def tear_half_a_batch(segment: Path) -> None:
    with segment.open("ab") as file:
        file.write(batch_of(b"x" * 1000)[:500])


def tear_a_few_bytes(segment: Path) -> None:
    with segment.open("ab") as file:
        file.write(b"\0\0\0")


def tear_with_zeros(segment: Path) -> None:
    with segment.open("ab") as file:
        file.write(bytes(10_000))


def tear_with_noise(segment: Path) -> None:
    with segment.open("ab") as file:
        file.write(b"\xde\xad\xbe\xef" * 1000)


def tear_with_a_wrong_checksum(segment: Path) -> None:
    with segment.open("ab") as file:
        file.write(batch_of(b"x" * 1000, base_offset=BATCHES, crc=1, leader_epoch=0))


@pytest.mark.parametrize(
    "tear", [tear_half_a_batch, tear_a_few_bytes, tear_with_zeros, tear_with_noise, tear_with_a_wrong_checksum]
)
def test_what_a_crash_left_after_the_last_batch_is_cut(crashed: BrokerProcess, tear: Callable[[Path], None]) -> None:
    tear(last_segment(crashed))
    crashed.start()
    with Wire(crashed.bootstrap_servers) as wire:
        assert values(wire) == [value(number) for number in range(BATCHES)]
        assert produced(wire.query(produce(TOPIC, batch_of(b"next")))).base_offset == BATCHES
        assert values(wire)[BATCHES:] == [b"next"]


def test_a_last_batch_that_is_cut_short_is_gone_and_its_offset_is_given_again(crashed: BrokerProcess) -> None:
    segment = last_segment(crashed)
    whole = sum(len(batch.raw) for batch in read_batches(segment.read_bytes()))
    with segment.open("r+b") as file:
        file.truncate(whole - 10)
    crashed.start()
    with Wire(crashed.bootstrap_servers) as wire:
        assert produced(wire.query(produce(TOPIC, batch_of(b"again")))).base_offset == BATCHES - 1
        assert values(wire)[-2:] == [value(BATCHES - 2), b"again"]


@pytest.mark.parametrize("kind", ["index", "timeindex"])
@pytest.mark.parametrize("harm", ["missing", "noise", "empty"])
def test_indexes_are_built_again(crashed: BrokerProcess, kind: str, harm: str) -> None:
    for index in (crashed.directory / f"{TOPIC}-0").glob(f"*.{kind}"):
        if harm == "missing":
            index.unlink()
        else:
            index.write_bytes(b"\xff\x00\x13" * 999 if harm == "noise" else b"")
    crashed.start()
    with Wire(crashed.bootstrap_servers) as wire:
        assert values(wire) == [value(number) for number in range(BATCHES)]
        part = fetched(wire.query(fetch(TOPIC, BATCHES - 1)))
        assert [batch.base_offset for batch in read_batches(part.records)] == [BATCHES - 1]


def test_a_producers_sequence_is_known_after_a_crash(make_broker: Callable[..., BrokerProcess]) -> None:
    broker = make_broker().start()
    with Wire(broker.bootstrap_servers) as wire:
        wire.call(
            "CreateTopics", 7, topics=[{"name": TOPIC, "num_partitions": 1, "replication_factor": 1}], timeout_ms=10_000
        )
        given = wire.call("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=60_000)
        last = batch_of(b"b", producer_id=given.producer_id, producer_epoch=0, base_sequence=1)
        first = batch_of(b"a", producer_id=given.producer_id, producer_epoch=0, base_sequence=0)
        for batch in (first, last):
            assert produced(wire.query(produce(TOPIC, batch))).error_code == 0
    broker.kill()
    broker.start()
    with Wire(broker.bootstrap_servers) as wire:
        again = produced(wire.query(produce(TOPIC, last)))
        assert (again.error_code, again.base_offset) == (0, 1)
        assert values(wire) == [b"a", b"b"]
        fresh = wire.call("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=60_000)
        assert fresh.producer_id > given.producer_id
