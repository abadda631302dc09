"""DescribeLogDirs: what lies in a broker's directories, as Kafka describes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.conftest import AGAINST_KAFKA, Server, Topic
from tests.support.batches import batch_of
from tests.support.wire import Wire, produce, produced

FIRST_VERSION = 1 if AGAINST_KAFKA else 0


def sizes(result: Any, topic: Topic) -> dict[int, int]:
    """Bytes of a topic's partitions in one directory."""
    found = [described for described in result.topics if described.name == topic.name]
    return {part.partition_index: part.partition_size for described in found for part in described.partitions}


@pytest.mark.parametrize("version", range(FIRST_VERSION, 6))
def test_directories_are_described_with_the_sizes_of_the_partitions_asked_about(
    wire: Wire, server: Server, create: Callable[..., Topic], version: int
) -> None:
    topic = create(partitions=2)
    batch = batch_of(b"x" * 1000)
    assert produced(wire.query(produce(topic.name, batch, partition=1))).error_code == 0
    for requested in (None, [{"topic": topic.name, "partitions": [0, 1]}]):
        (result,) = wire.call("DescribeLogDirs", version, topics=requested).results
        assert result.error_code == 0
        assert result.log_dir == str(server.log_directory)
        assert sizes(result, topic) == {0: 0, 1: len(batch)}
        if version >= 4:
            assert 0 < result.usable_bytes <= result.total_bytes
    parts = [part for described in result.topics for part in described.partitions]
    assert [(part.offset_lag, part.is_future_key) for part in parts] == [(0, False)] * 2


def test_only_what_is_asked_about_is_returned(wire: Wire, create: Callable[..., Topic]) -> None:
    topic = create(partitions=3)
    requested = [{"topic": topic.name, "partitions": [2, 7]}, {"topic": "no-such-topic", "partitions": [0]}]
    (result,) = wire.call("DescribeLogDirs", 4, topics=requested).results
    assert [described.name for described in result.topics] == [topic.name]
    assert sizes(result, topic) == {2: 0}
    twice = [{"topic": topic.name, "partitions": [index]} for index in (0, 2)]
    (result,) = wire.call("DescribeLogDirs", 4, topics=twice).results
    assert sizes(result, topic) == {0: 0, 2: 0}
