from __future__ import annotations

import pytest

from pybroker.config.broker import BrokerConfig
from pybroker.coordinator.transaction.state_topic import STATE_TOPIC, build_state_topic, state_topic_settings


def build(brokers: int, **given: int) -> tuple[int, int, dict[str, str]]:
    """Partitions, replicas and settings of the topic by these of `transaction.state.log.*`."""
    config = BrokerConfig({f"transaction.state.log.{key.replace('_', '.')}": str(one) for key, one in given.items()})
    topic = build_state_topic(config, brokers)
    assert topic.name == STATE_TOPIC
    return topic.num_partitions, topic.replication_factor, {one.name: one.value or "" for one in topic.configs}


def test_it_is_made_as_kafkas_defaults_say() -> None:
    partitions, replicas, configs = build(3)
    assert (partitions, replicas) == (50, 3)
    assert configs == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "2",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }


@pytest.mark.parametrize(
    ("brokers", "factor", "min_isr", "replicas", "needed"),
    [(1, 3, 2, 1, "1"), (2, 3, 2, 2, "2"), (5, 3, 2, 3, "2"), (5, 4, 3, 4, "3"), (2, 4, 3, 2, "2"), (0, 3, 2, 1, "1")],
)
def test_it_takes_no_more_replicas_than_there_are_brokers_and_needs_no_more_than_it_has(
    brokers: int, factor: int, min_isr: int, replicas: int, needed: str
) -> None:
    _, made, configs = build(brokers, replication_factor=factor, min_isr=min_isr)
    assert (made, configs["min.insync.replicas"]) == (replicas, needed)


def test_partitions_and_segments_are_as_they_are_set() -> None:
    partitions, _, configs = build(1, num_partitions=7, segment_bytes=2_000_000)
    assert (partitions, configs["segment.bytes"]) == (7, "2000000")


def test_the_settings_in_force_are_named() -> None:
    config = BrokerConfig({"transaction.state.log.num.partitions": "7"})
    assert state_topic_settings(config) == {
        "transaction.state.log.num.partitions": 7,
        "transaction.state.log.replication.factor": 3,
        "transaction.state.log.min.isr": 2,
        "transaction.state.log.segment.bytes": 104_857_600,
    }
