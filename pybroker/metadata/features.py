"""The features with finalized levels (KIP-584), and the levels that this software supports.

Owns the ranges only. The finalized levels are in the image, from `FeatureLevelRecord`s.
"""

from __future__ import annotations

ELIGIBLE_LEADER_REPLICAS_VERSION = "eligible.leader.replicas.version"
"""At 1, replicas outside the ISR that have all committed records may become leader if the ISR is empty (KIP-966)."""
GROUP_VERSION = "group.version"
"""At 1, the group coordinator serves the consumer protocol (KIP-848)."""
KRAFT_VERSION = "kraft.version"
"""At 1, the log contains the voter set of the metadata quorum (KIP-853). The level is in control records."""
METADATA_VERSION = "metadata.version"
STREAMS_VERSION = "streams.version"
"""At 1, the group coordinator serves the streams protocol (KIP-1071)."""
TRANSACTION_VERSION = "transaction.version"
"""At 1, records of `__transaction_state` are flexible. At 2, the end of a transaction bumps the epoch (KIP-890)."""

SUPPORTED_FEATURES: dict[str, tuple[int, int]] = {
    ELIGIBLE_LEADER_REPLICAS_VERSION: (0, 1),
    GROUP_VERSION: (0, 1),
    KRAFT_VERSION: (0, 1),
    METADATA_VERSION: (7, 30),
    STREAMS_VERSION: (0, 1),
    TRANSACTION_VERSION: (0, 2),
}
"""Lowest and highest level by name. 30 is Kafka's 4.3-IV0.

Levels 26 to 29 change defaults of new clusters (eligible leader replicas, share and streams groups) and followers'
Fetch version, but no record. Level 30 adds records of cordoned log directories. They are never written, since
`cordoned.log.dirs` is rejected.
"""

LEFT_OUT = frozenset({"share.version"})
"""Kafka's features that pybroker does not implement.

A log written by Kafka may have levels of them. They stay in the image, so that Kafka finds them if the cluster returns
to Kafka. They have no effect on pybroker's brokers.
"""

INITIAL_LEVELS: dict[str, int] = {METADATA_VERSION: 25, GROUP_VERSION: 1, STREAMS_VERSION: 1, TRANSACTION_VERSION: 2}
"""The levels of a new cluster: the newest ones that are fully implemented, for metadata.version Kafka's 4.0-IV3.

Kafka's own new clusters have streams.version 1 from 4.2-IV1 on. The level requires no metadata.version.
"""

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
"""The version in which each metadata record is written: that of metadata.version 25."""
