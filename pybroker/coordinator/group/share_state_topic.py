"""The topic `__share_group_state` as Kafka's share coordinator creates it.

Owns its name and its configuration. Share groups are not supported: the topic is only created if a client names it. A
cluster that moves to Kafka then has the topic in Kafka's format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig

if TYPE_CHECKING:
    from pybroker.config.broker import BrokerConfig

SHARE_STATE_TOPIC = "__share_group_state"
_PARTITIONS = 50
_SEGMENT_BYTES = 100 * 1024**2


def build_share_state_topic(config: BrokerConfig, brokers: int) -> CreatableTopic:
    """Return the topic, with no more replicas and in-sync replicas than there are `brokers` (docs/adr/0015)."""
    replicas = max(1, min(config.share_coordinator_state_topic_replication_factor, brokers))
    configs = {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "min.insync.replicas": str(min(config.share_coordinator_state_topic_min_isr, replicas)),
        "retention.ms": "-1",
        "segment.bytes": str(_SEGMENT_BYTES),
    }
    return CreatableTopic(
        name=SHARE_STATE_TOPIC,
        num_partitions=_PARTITIONS,
        replication_factor=replicas,
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
    )
