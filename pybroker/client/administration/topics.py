"""Topics, partitions, brokers and configs in Admin's arguments and results. Plain values, no behaviour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field


class NewTopic(Struct, frozen=True):
    """A topic to create; with -1 the broker chooses the number."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """Broker ids by partition; then the two numbers must be -1."""


class CreatedTopic(Struct, frozen=True):
    """A topic that was created (with validate_only: would be); -1 and zeros from a broker too old to return them."""

    name: str
    topic_id: bytes
    partitions: int
    replication_factor: int


class PartitionDescription(Struct, frozen=True):
    """One partition as Metadata returns it; leader -1 means none."""

    index: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]
    eligible_leaders: tuple[int, ...] | None = None
    """Eligible leader replicas outside of the ISR (KIP-966); None where they were not requested or not returned."""
    last_known_eligible_leaders: tuple[int, ...] | None = None
    """The last members of the ISR before it was empty; None as above."""


class TopicDescription(Struct, frozen=True):
    """One topic as Metadata returns it, partitions by index."""

    name: str
    topic_id: bytes
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]


class BrokerDescription(Struct, frozen=True):
    """One broker's address, and whether it is fenced."""

    node_id: int
    host: str
    port: int
    rack: str | None
    fenced: bool = False


class ClusterDescription(Struct, frozen=True):
    """The cluster id, its controller and its brokers."""

    cluster_id: str | None
    controller_id: int
    brokers: tuple[BrokerDescription, ...]


class FeatureDescription(Struct, frozen=True):
    """A feature's finalized level (0: none), and the lowest and highest level that the queried broker supports."""

    level: int
    lowest: int
    highest: int
    epoch: int = -1
    """Increases with every change of a finalized level; -1 where it is unknown."""


class ConfigSynonym(Struct, frozen=True):
    """One source of a setting's value, in order of precedence."""

    name: str
    value: str | None
    source: int


class ConfigEntry(Struct, frozen=True):
    """One setting of a topic or broker. `source` is DescribeConfigs' number (5: a default)."""

    name: str
    value: str | None
    read_only: bool
    source: int
    is_sensitive: bool
    synonyms: tuple[ConfigSynonym, ...] = ()


class ConfigChange(Struct, frozen=True):
    """A change of one setting: `operation` is `SET`, `DELETE`, `APPEND` or `SUBTRACT` (KIP-339)."""

    name: str
    value: str | None
    operation: int


class MorePartitions(Struct, frozen=True):
    """The total partition count to reach, and the replicas of each new partition unless the cluster chooses them."""

    total: int
    assignments: Sequence[Sequence[int]] | None = None


class TopicPartition(Struct, frozen=True):
    """A partition of a topic by name."""

    topic: str
    partition: int


class Reassignment(Struct, frozen=True):
    """The replicas of a partition during a reassignment, with those that are added and removed."""

    replicas: tuple[int, ...]
    """All replicas, also those that are added or removed."""
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class ListedOffset(Struct, frozen=True):
    """A result of ListOffsets: offset -1 where no record is at or after the requested timestamp."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
"""Special timestamps of `list_offsets`: the first offset, the one after the last, the record with the highest time."""

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
"""Resource types of `describe_configs`."""

SET, DELETE, APPEND, SUBTRACT = range(4)
"""Operations of IncrementalAlterConfigs."""

HIGH_WATERMARK = -1
"""The offset of `delete_records` that stands for all committed records."""
