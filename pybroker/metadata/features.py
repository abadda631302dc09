"""The features whose levels a cluster agrees on (KIP-584), and the levels that this software supports.

Owns the ranges alone. The level in force is in the image, put there by `FeatureLevelRecord`s.
"""

from __future__ import annotations

ELIGIBLE_LEADER_REPLICAS_VERSION = "eligible.leader.replicas.version"
"""At 1 replicas that left the ISR and have all that is committed may lead when nobody is in sync (KIP-966)."""
GROUP_VERSION = "group.version"
"""At 1 the group coordinator serves the consumer protocol (KIP-848)."""
KRAFT_VERSION = "kraft.version"
"""At 1 the log names the voters of the metadata quorum (KIP-853). Its level is in control records, not in the image."""
METADATA_VERSION = "metadata.version"
TRANSACTION_VERSION = "transaction.version"
"""At 1 records of `__transaction_state` are flexible; at 2 the end of a transaction raises the epoch (KIP-890)."""

SUPPORTED_FEATURES: dict[str, tuple[int, int]] = {
    ELIGIBLE_LEADER_REPLICAS_VERSION: (0, 1),
    GROUP_VERSION: (0, 1),
    KRAFT_VERSION: (0, 1),
    METADATA_VERSION: (7, 30),
    TRANSACTION_VERSION: (0, 2),
}
"""Lowest and highest level by name. 30 is Kafka's 4.3-IV0.

Levels 26 to 29 change what a new cluster begins with (eligible leader replicas, share and streams groups) and which
Fetch followers send, no record. Level 30 brings records of cordoned log directories: `cordoned.log.dirs` is refused, so
that there are none to be written."""

LEFT_OUT = frozenset({"share.version", "streams.version"})
"""Kafka's features of parts that are not here.

A log that Kafka has written may give them levels. The levels stay in the image, so that Kafka finds them when it comes
back, and they bind no broker here."""

INITIAL_LEVELS: dict[str, int] = {METADATA_VERSION: 25, GROUP_VERSION: 1, TRANSACTION_VERSION: 2}
"""What a new cluster begins with: the newest level all of whose meaning is there, Kafka's 4.0-IV3."""

RECORD_VERSIONS: dict[str, int] = {
    "AccessControlEntryRecord": 0,
    "BrokerRegistrationChangeRecord": 2,
    "ClearElrRecord": 0,
    "ClientQuotaRecord": 0,
    "ConfigRecord": 0,
    "DelegationTokenRecord": 0,
    "FeatureLevelRecord": 0,
    "NoOpRecord": 0,
    "PartitionChangeRecord": 2,
    "PartitionRecord": 2,
    "ProducerIdsRecord": 0,
    "RegisterBrokerRecord": 3,
    "RegisterControllerRecord": 0,
    "RemoveAccessControlEntryRecord": 0,
    "RemoveDelegationTokenRecord": 0,
    "RemoveTopicRecord": 0,
    "RemoveUserScramCredentialRecord": 0,
    "TopicRecord": 0,
    "UnregisterBrokerRecord": 0,
    "UserScramCredentialRecord": 0,
}
"""The version in which each metadata record is written: those of metadata.version 25."""
