"""A closed segment that was cut while the broker was down: what librdkafka reads, and what the log contains."""

from __future__ import annotations

from pathlib import Path

import confluent_kafka
import pytest

from pybroker.client import Admin, NewTopic
from pybroker.testing import Broker
from tests.support.batches import batch_of
from tests.support.conditions import wait_until
from tests.support.wire import Wire, produce, produced

pytestmark = pytest.mark.process

TOPIC = "t"
VALUES = [b"%03d" % number + bytes(60_000) for number in range(40)]


def consume(broker: Broker) -> list[bytes]:
    """Read the partition from the beginning to the last value with librdkafka."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
    try:
        consumer.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
        values: list[bytes] = []

        def is_at_end() -> bool:
            values.extend(message.value() for message in consumer.consume(100, 1) if message.error() is None)
            return values[-1:] == VALUES[-1:]

        wait_until(is_at_end, within=60, what="the last record")
        return values
    finally:
        consumer.close()


@pytest.mark.parametrize("torn", [0, 100], ids=["at a batch's edge", "within a batch"])
def test_consumers_continue_behind_records_that_a_closed_segment_has_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, torn: int
) -> None:
    with Broker(directory=tmp_path) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(TOPIC, 1, configs={"segment.bytes": "1048576"})])
            admin.wait_for_leaders(TOPIC)
        with Wire(broker.bootstrap_servers) as wire:
            for value in VALUES:
                assert produced(wire.query(produce(TOPIC, batch_of(value)))).error_code == 0
        broker.stop(keep=True)
        first, second, *_ = sorted(tmp_path.rglob(f"{TOPIC}-0/*.log"))
        batch = first.stat().st_size // int(second.stem)
        lost = range(int(second.stem) - 3, int(second.stem))
        with first.open("r+b") as file:
            file.truncate(lost.start * batch + torn)
        broker.start()
        assert consume(broker) == [value for number, value in enumerate(VALUES) if number not in lost]
        line = f"the records from offset {lost.start} to {lost.stop} are missing: the segment ends at byte"
        assert caplog.text.count(line) == 1
        broker.restart()
        assert caplog.text.count(line) == 1, "it is reported once"
