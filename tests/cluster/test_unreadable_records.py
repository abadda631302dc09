"""A record of a coordinator's topic that cannot be read: the others of its partition are loaded, and one line names it.

The record is written into the log by hand while the broker is down, as a fault of a disk or a later version would leave
it: its batch is whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import confluent_kafka
import pytest

from tests.support.batches import Batch, Record, read_batches
from tests.support.coordinator_records import COMPLETE_COMMIT, offset_key, transaction_key, transaction_value
from tests.support.processes import BrokerProcess
from tests.support.wire import Wire

pytestmark = pytest.mark.process

PARTITIONS = {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}
NO_STATUS = 77


class Producing(NamedTuple):
    """A transactional producer, and the values that it has committed."""

    producer: confluent_kafka.Producer
    committed: list[bytes]

    def commit(self, value: bytes) -> None:
        """Commit a transaction of one record."""
        self.producer.begin_transaction()
        self.producer.produce("t", value, partition=0)
        self.producer.commit_transaction(60)
        self.committed.append(value)


def producing(broker: BrokerProcess, transactional_id: str) -> Producing:
    settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": transactional_id}
    producer = confluent_kafka.Producer(settings)
    producer.init_transactions(60)
    return Producing(producer, [])


def append(segment: Path, record: Record) -> int:
    """Write a batch of one record behind the last one, and return its offset."""
    last = read_batches(segment.read_bytes())[-1]
    batch = Batch((record,), base_offset=last.last_offset + 1, leader_epoch=last.leader_epoch)
    with segment.open("ab") as file:
        file.write(batch.encode())
    return batch.base_offset


def consumer(broker: BrokerProcess) -> confluent_kafka.Consumer:
    return confluent_kafka.Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "isolation.level": "read_committed"}
    )


def commit_offset(broker: BrokerProcess, offset: int) -> None:
    reader = consumer(broker)
    reader.commit(offsets=[confluent_kafka.TopicPartition("t", 0, offset)], asynchronous=False)
    reader.close()


def committed_offset(broker: BrokerProcess) -> int:
    reader = consumer(broker)
    (part,) = reader.committed([confluent_kafka.TopicPartition("t", 0)], 60)
    reader.close()
    return int(part.offset)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path / "data", PARTITIONS) as process:
        yield process


def segment(broker: BrokerProcess, topic: str) -> Path:
    return broker.directory / f"{topic}-0" / f"{0:020}.log"


def test_a_transactional_producer_of_another_id_continues(broker: BrokerProcess) -> None:
    good, bad = producing(broker, "good"), producing(broker, "bad")
    good.commit(b"1")
    bad.commit(b"2")
    broker.terminate()
    log = segment(broker, "__transaction_state")
    offset = append(log, Record(transaction_value(status=NO_STATUS), transaction_key("bad")))
    append(log, Record(transaction_value(status=COMPLETE_COMMIT), transaction_key("after")))
    broker.start()
    good.commit(b"3")
    again = producing(broker, "bad")
    again.commit(b"4")
    lines = [line for line in broker.log.splitlines() if "Skipping the record" in line]
    assert len(lines) == 1
    assert f"Skipping the record at offset {offset} of __transaction_state-0" in lines[0]
    assert f"the transaction status is {NO_STATUS}" in lines[0]
    assert "transactional id 'bad' is unknown here unless a later record has its state" in lines[0]
    with Wire(broker.bootstrap_servers) as wire:
        found = wire.call("DescribeTransactions", 0, transactional_ids=["after", "good"]).transaction_states
    assert [one.transaction_state for one in found] == ["CompleteCommit", "CompleteCommit"], "behind the record, too"
    assert values(broker, 4) == [b"1", b"2", b"3", b"4"]


def values(broker: BrokerProcess, count: int) -> list[bytes]:
    """The first committed values of the topic."""
    reader = consumer(broker)
    reader.assign([confluent_kafka.TopicPartition("t", 0, 0)])
    found: list[bytes] = []
    while len(found) < count:
        messages = reader.consume(count - len(found), 60)
        assert messages, f"no record within 60 s after {found}"
        found += [message.value() for message in messages if message.error() is None]
    reader.close()
    return found


def test_the_producer_of_the_id_is_rejected_until_it_starts_again(broker: BrokerProcess) -> None:
    bad = producing(broker, "bad")
    bad.commit(b"1")
    broker.terminate()
    append(segment(broker, "__transaction_state"), Record(b"", transaction_key("bad")))
    broker.start()
    with pytest.raises(confluent_kafka.KafkaException) as rejected:
        bad.commit(b"2")
    assert rejected.value.args[0].code() == confluent_kafka.KafkaError.INVALID_PRODUCER_ID_MAPPING
    producing(broker, "bad").commit(b"3")
    broker.kill()
    broker.start()
    producing(broker, "bad").commit(b"4")
    assert values(broker, 3) == [b"1", b"3", b"4"]


def test_a_group_keeps_its_earlier_offset(broker: BrokerProcess) -> None:
    producing(broker, "good").commit(b"1")
    commit_offset(broker, 1)
    broker.terminate()
    offset = append(segment(broker, "__consumer_offsets"), Record(b"\0\x63", offset_key("g", "t")))
    broker.start()
    assert committed_offset(broker) == 1
    assert f"Skipping the record at offset {offset} of __consumer_offsets-0" in broker.log
    assert "group 'g' keeps the offset of t-0 from another record" in broker.log
    commit_offset(broker, 2)
    broker.kill()
    broker.start()
    assert committed_offset(broker) == 2
