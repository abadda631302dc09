"""Retention and crashes: what was deleted stays deleted, what was not is whole, however often the broker is killed."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.batches import batch_of, read_batches
from tests.support.conditions import wait_until
from tests.support.processes import BrokerProcess
from tests.support.wire import Wire, fetch, fetched, produce, produced

pytestmark = pytest.mark.process

TOPIC = "t"
DAY_MS = 86_400_000
ROUNDS = int(os.environ.get("PYBROKER_KILL_ROUNDS", "5"))
NOW_MS = int(time.time() * 1000)


def create(wire: Wire, **configs: str) -> None:
    """Make the topic with these settings."""
    given = [{"name": name.replace("_", "."), "value": value} for name, value in configs.items()]
    topic = {"name": TOPIC, "num_partitions": 1, "replication_factor": 1, "configs": given}
    assert wire.call("CreateTopics", 7, topics=[topic], timeout_ms=10_000).topics[0].error_code == 0


def append(wire: Wire, number: int, age_ms: int = 0) -> None:
    """The record of that number, which is its offset."""
    part = produced(wire.query(produce(TOPIC, batch_of(b"%d" % number, base_timestamp=NOW_MS - age_ms))))
    assert (part.error_code, part.base_offset) == (0, number)


def alter(wire: Wire, kind: int, name: str, **configs: str | None) -> None:
    """Set (None: delete) settings of a resource."""
    changes = [
        {"name": key.replace("_", "."), "config_operation": 1 if value is None else 0, "value": value}
        for key, value in configs.items()
    ]
    requested = [{"resource_type": kind, "resource_name": name, "configs": changes}]
    (outcome,) = wire.call("IncrementalAlterConfigs", 1, resources=requested, validate_only=False).responses
    assert outcome.error_code == 0, outcome


def log_start(wire: Wire) -> int:
    """Where the log starts, by a fetch at its end."""
    requested = [{"partition_index": 0, "current_leader_epoch": -1, "timestamp": -2}]
    topics = [{"name": TOPIC, "partitions": requested}]
    response = wire.call("ListOffsets", 7, replica_id=-1, isolation_level=0, topics=topics)
    return int(response.topics[0].partitions[0].offset)


def delete_records(wire: Wire, offset: int) -> int:
    """Move the log start; what the broker says it is then."""
    requested = [{"name": TOPIC, "partitions": [{"partition_index": 0, "offset": offset}]}]
    (topic,) = wire.call("DeleteRecords", 2, topics=requested, timeout_ms=10_000).topics
    assert topic.partitions[0].error_code == 0
    return int(topic.partitions[0].low_watermark)


def check_whole(wire: Wire, start: int, end: int) -> None:
    """Read every record from the log start on."""
    offset = start
    while offset < end:
        part = fetched(wire.query(fetch(TOPIC, offset)))
        assert part.error_code == 0
        batches = read_batches(part.records)
        assert batches
        for batch in batches:
            assert batch.values == [b"%d" % batch.base_offset]
            offset = max(offset, batch.base_offset + 1)
    assert offset == end


def looked(wire: Wire, start: int, dice: random.Random) -> bool:
    """Whether the log start has moved, or it is time to go on all the same."""
    return log_start(wire) != start or dice.random() < 0.1


def bases(broker: BrokerProcess, suffix: str) -> list[int]:
    """Base offsets of the files with this suffix."""
    directory: Path = broker.directory / f"{TOPIC}-0"
    return sorted(int(path.name[:20]) for path in directory.iterdir() if path.name.endswith(suffix))


def test_a_log_start_that_was_returned_survives_a_kill(make_broker: Callable[..., BrokerProcess]) -> None:
    broker = make_broker().start()
    with Wire(broker.bootstrap_servers) as wire:
        create(wire, segment_ms=str(DAY_MS), retention_ms="-1")
        for number in range(8):
            append(wire, number, (8 - number) * 2 * DAY_MS)
        assert delete_records(wire, 3) == 3
    broker.kill()
    assert bases(broker, ".log.deleted") != [], "the files wait for file.delete.delay.ms"
    broker.start()
    assert bases(broker, ".deleted") == []
    with Wire(broker.bootstrap_servers) as wire:
        assert log_start(wire) == 3
        check_whole(wire, 3, 8)
        assert delete_records(wire, -1) == 8
    assert broker.terminate() == 0
    broker.start()
    with Wire(broker.bootstrap_servers) as wire:
        assert log_start(wire) == 8
        append(wire, 8)


def test_a_kill_during_retention_leaves_a_whole_log(make_broker: Callable[..., BrokerProcess]) -> None:
    broker = make_broker(log_retention_check_interval_ms="1", log_initial_task_delay_ms="0").start()
    dice = random.Random(11)
    with Wire(broker.bootstrap_servers) as wire:
        create(wire, segment_ms="1", retention_ms="-1", file_delete_delay_ms="0")
    end = floor = 0
    for _ in range(ROUNDS):
        with Wire(broker.bootstrap_servers) as wire:
            alter(wire, 2, TOPIC, retention_ms="-1")
            for _ in range(60):  # a segment for each record, the older ones a day old
                append(wire, end, DAY_MS - end)
                end += 1
            floor = log_start(wire)
            alter(wire, 2, TOPIC, retention_ms=str(DAY_MS - end - dice.randrange(-40, 40)))
            wait_until(partial(looked, wire, floor, dice), within=60, what="a look")
            floor = log_start(wire)
        broker.kill()
        broker.start()
        with Wire(broker.bootstrap_servers) as wire:
            start = log_start(wire)
            assert start >= floor, "what was out of reach does not come back"
            check_whole(wire, start, end)


def test_a_topic_made_anew_does_not_inherit_a_log_start(make_broker: Callable[..., BrokerProcess]) -> None:
    broker = make_broker().start()
    with Wire(broker.bootstrap_servers) as wire:
        create(wire)
        for number in range(5):
            append(wire, number)
        assert delete_records(wire, 5) == 5
        wire.call("DeleteTopics", 6, topics=[{"name": TOPIC}], timeout_ms=10_000)
        create(wire)
        append(wire, 0)
    broker.kill()
    broker.start()
    with Wire(broker.bootstrap_servers) as wire:
        assert log_start(wire) == 0
        check_whole(wire, 0, 1)


def test_changed_settings_survive_a_kill_and_are_in_force(make_broker: Callable[..., BrokerProcess]) -> None:
    broker = make_broker().start()
    too_large = batch_of(b"x" * 200)
    with Wire(broker.bootstrap_servers) as wire:
        create(wire)
        alter(wire, 4, "1", message_max_bytes="100")
        alter(wire, 4, "", log_retention_ms="7")
        alter(wire, 2, TOPIC, flush_ms="9")
    broker.kill()
    broker.start()
    with Wire(broker.bootstrap_servers) as wire:
        assert produced(wire.query(produce(TOPIC, too_large))).error_code == 10
        requested = [{"resource_type": 2, "resource_name": TOPIC, "configuration_keys": None}]
        (result,) = wire.call(
            "DescribeConfigs", 4, resources=requested, include_synonyms=False, include_documentation=False
        ).results
        found = {entry.name: (entry.value, entry.config_source) for entry in result.configs}
        assert found["max.message.bytes"] == ("100", 2)
        assert found["retention.ms"] == ("7", 3)
        assert found["flush.ms"] == ("9", 1)
        alter(wire, 4, "1", message_max_bytes=None)
        assert produced(wire.query(produce(TOPIC, too_large))).error_code == 0
