"""The offsets topic as it is created."""

from __future__ import annotations

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.coordinator.group.offsets_topic import build_offsets_topic


@pytest.mark.parametrize(("brokers", "replicas"), [(0, 1), (1, 1), (2, 2), (3, 3), (9, 3)])
def test_it_takes_as_many_replicas_as_there_are_brokers_and_no_more_than_is_set(brokers: int, replicas: int) -> None:
    assert build_offsets_topic(BrokerConfig({}), brokers).replication_factor == replicas


def test_it_is_compacted_in_segments_of_its_own_size() -> None:
    topic = build_offsets_topic(BrokerConfig({"offsets.topic.num.partitions": "7"}), 1)
    assert (topic.name, topic.num_partitions) == ("__consumer_offsets", 7)
    assert {config.name: config.value for config in topic.configs} == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }
