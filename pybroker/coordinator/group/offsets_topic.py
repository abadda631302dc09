"""The topic `__consumer_offsets`, created on first use.

Owns its name and its configuration. Must not know how it is created.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig

if TYPE_CHECKING:
    from pybroker.config.broker import BrokerConfig

OFFSETS_TOPIC = "__consumer_offsets"


def build_offsets_topic(config: BrokerConfig, brokers: int) -> CreatableTopic:
    """Return the topic's description; its replication factor is at most the number of brokers (docs/adr/0015)."""
    configs = {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(config.offsets_topic_segment_bytes),
    }
    return CreatableTopic(
        name=OFFSETS_TOPIC,
        num_partitions=config.offsets_topic_num_partitions,
        replication_factor=max(1, min(config.offsets_topic_replication_factor, brokers)),
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
    )


def offsets_topic_settings(config: BrokerConfig) -> dict[str, int]:
    """Return the broker settings that the topic is created with."""
    return {
        "offsets.topic.num.partitions": config.offsets_topic_num_partitions,
        "offsets.topic.replication.factor": config.offsets_topic_replication_factor,
        "offsets.topic.segment.bytes": config.offsets_topic_segment_bytes,
    }
