"""The age at which segments roll, measured by the records' timestamps: nobody waits here."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pybroker.testing import Broker
from tests.support.batches import batch_of
from tests.support.wire import Wire, produce, produced

TOPIC = "t"
LOGS = 16
SEGMENT_MS = 1_000_000
STEP_MS = 100_000
A_DAY_AGO_MS = int(time.time() * 1000) - 86_400_000


def ages_at_rolls(broker: Broker, configs: dict[str, str]) -> list[int]:
    """Make a topic, and return for each of its logs how old the first segment was when the second was begun."""
    ages = []
    given = [{"name": name, "value": value} for name, value in configs.items()]
    topic = {"name": TOPIC, "num_partitions": LOGS, "replication_factor": 1, "configs": given}
    with Wire(broker.bootstrap_servers) as wire:
        assert wire.call("CreateTopics", 7, topics=[topic], timeout_ms=10_000).topics[0].error_code == 0
        for index in range(LOGS):
            directory = Path(broker.directory) / f"{TOPIC}-{index}"
            for age in (0, *range(STEP_MS, SEGMENT_MS + 1, STEP_MS), SEGMENT_MS + 1):
                batch = batch_of(b"v", base_timestamp=A_DAY_AGO_MS + age)
                assert produced(wire.query(produce(TOPIC, batch, partition=index))).error_code == 0
                if len(list(directory.glob("*.log"))) > 1:
                    ages.append(age)
                    break
    return ages


@pytest.mark.parametrize(
    ("of_broker", "of_topic", "jitter_ms"),
    [
        ({}, {"segment.jitter.ms": "600000"}, 600_000),
        ({"log.roll.jitter.ms": "600000"}, {}, 600_000),
        ({"log.roll.jitter.ms": "600000", "log.roll.jitter.hours": "0"}, {"segment.jitter.ms": "500000"}, 500_000),
        ({"log.roll.jitter.hours": "1"}, {}, SEGMENT_MS),  # more than the age is no more than the age
    ],
)
def test_segments_roll_earlier_by_a_jitter_that_each_log_draws(
    of_broker: dict[str, str], of_topic: dict[str, str], jitter_ms: int
) -> None:
    with Broker(properties=of_broker) as broker:
        ages = ages_at_rolls(broker, {"segment.ms": str(SEGMENT_MS), **of_topic})
    assert len(ages) == LOGS
    assert all(SEGMENT_MS - jitter_ms < age <= SEGMENT_MS + 1 for age in ages)
    assert len(set(ages)) > 1


def test_without_jitter_all_segments_roll_at_their_age() -> None:
    with Broker(properties={"log.roll.ms": str(SEGMENT_MS)}) as broker:
        assert ages_at_rolls(broker, {}) == [SEGMENT_MS + 1] * LOGS
