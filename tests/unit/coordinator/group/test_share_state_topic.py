from __future__ import annotations

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.coordinator.group.share_state_topic import build_share_state_topic


@pytest.mark.parametrize(
    ("brokers", "factor", "min_isr", "replicas", "needed"),
    [(1, 3, 2, 1, "1"), (2, 3, 2, 2, "2"), (5, 3, 2, 3, "2"), (2, 4, 3, 2, "2"), (0, 3, 2, 1, "1")],
)
def test_the_topic_has_no_more_replicas_than_there_are_brokers(
    brokers: int, factor: int, min_isr: int, replicas: int, needed: str
) -> None:
    prefix = "share.coordinator.state.topic."
    config = BrokerConfig({f"{prefix}replication.factor": str(factor), f"{prefix}min.isr": str(min_isr)})
    topic = build_share_state_topic(config, brokers)
    assert (topic.name, topic.num_partitions, topic.replication_factor) == ("__share_group_state", 50, replicas)
    assert {one.name: one.value for one in topic.configs}["min.insync.replicas"] == needed
