"""`flush=group`: what is acknowledged is on the device, for the broker and for one topic."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.batches import batch_of, read_batches
from tests.support.processes import BrokerProcess
from tests.support.wire import Wire, fetch, fetched, produce, produced

pytestmark = pytest.mark.process

TOPIC = "synced"


def create(wire: Wire, **configs: str) -> None:
    """Make the topic with settings of its own."""
    entries = [{"name": name.replace("_", "."), "value": value} for name, value in configs.items()]
    topic = {"name": TOPIC, "num_partitions": 1, "replication_factor": 1, "configs": entries}
    answer = wire.call("CreateTopics", 7, topics=[topic], timeout_ms=10_000)
    assert answer.topics[0].error_code == 0


@pytest.mark.parametrize("where", ["broker", "topic"])
def test_acknowledged_batches_were_synced_and_are_there_after_a_kill(
    make_broker: Callable[..., BrokerProcess], where: str
) -> None:
    broker = make_broker(**({"flush": "group"} if where == "broker" else {})).start()
    with Wire(broker.bootstrap_servers) as wire:
        create(wire, **({"flush": "group"} if where == "topic" else {}))
        for number in range(20):
            answer = produced(wire.ask(produce(TOPIC, batch_of(b"%d" % number), acks=1 if number % 2 else -1)))
            assert (answer.error_code, answer.base_offset) == (0, number)
        part = fetched(wire.ask(fetch(TOPIC, 0, partition_max_bytes=1 << 20)))
        assert (part.error_code, part.high_watermark) == (0, 20)
    broker.kill()
    broker.start()
    with Wire(broker.bootstrap_servers) as wire:
        part = fetched(wire.ask(fetch(TOPIC, 0, partition_max_bytes=1 << 20)))
        assert part.high_watermark == 20
        values = [value for batch in read_batches(part.records) for value in batch.values]
        assert values == [b"%d" % number for number in range(20)]
        assert produced(wire.ask(produce(TOPIC, batch_of(b"more")))).base_offset == 20
    assert broker.terminate() == 0
    assert "flush=group:" in broker.log
