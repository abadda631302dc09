"""The topic `__transaction_state`, created on first use.

Owns its name and its configuration. Must not know how it is created.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig

if TYPE_CHECKING:
    from pybroker.config.broker import BrokerConfig

STATE_TOPIC = "__transaction_state"


def build_state_topic(config: BrokerConfig, brokers: int) -> CreatableTopic:
    """Return the topic's description; its replication factor is at most the number of brokers (docs/adr/0015).

    Its min.insync.replicas is at most the replication factor: otherwise every append would fail.
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
    """Return the broker settings that the topic is created with."""
    return {
        "transaction.state.log.num.partitions": config.transaction_state_log_num_partitions,
        "transaction.state.log.replication.factor": config.transaction_state_log_replication_factor,
        "transaction.state.log.min.isr": config.transaction_state_log_min_isr,
        "transaction.state.log.segment.bytes": config.transaction_state_log_segment_bytes,
    }
