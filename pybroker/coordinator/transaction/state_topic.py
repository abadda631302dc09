"""The topic `__transaction_state` as it is created on first need.

Owns its name and its settings. Must not know who creates it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig

if TYPE_CHECKING:
    from pybroker.config.broker import BrokerConfig

STATE_TOPIC = "__transaction_state"


def build_state_topic(config: BrokerConfig, brokers: int) -> CreatableTopic:
    """Describe the topic; it takes no more replicas than there are brokers (docs/adr/0015).

    Nor does it ask for more in-sync replicas than it has: nothing could be written to it.
    """
    replicas = max(1, min(config.transaction_state_log_replication_factor, brokers))
    configs = {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": str(min(config.transaction_state_log_min_isr, replicas)),
        "segment.bytes": str(config.transaction_state_log_segment_bytes),
        "unclean.leader.election.enable": "false",
    }
    return CreatableTopic(
        name=STATE_TOPIC,
        num_partitions=config.transaction_state_log_num_partitions,
        replication_factor=replicas,
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
    )


def state_topic_settings(config: BrokerConfig) -> dict[str, int]:
    """Return the broker's settings that the topic is made by, as they are in force."""
    return {
        "transaction.state.log.num.partitions": config.transaction_state_log_num_partitions,
        "transaction.state.log.replication.factor": config.transaction_state_log_replication_factor,
        "transaction.state.log.min.isr": config.transaction_state_log_min_isr,
        "transaction.state.log.segment.bytes": config.transaction_state_log_segment_bytes,
    }
