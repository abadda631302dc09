"""What Admin takes and gives: topics to create, and what a cluster says of itself. Plain values, no behaviour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field


class NewTopic(Struct, frozen=True):
    """A topic to create; -1 leaves a number to the broker."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """Brokers by partition; then the two numbers must be -1."""


class CreatedTopic(Struct, frozen=True):
    """A topic that was created (or would be, with validate_only); -1 and zeros where an old broker does not say."""

    name: str
    topic_id: bytes
    partitions: int
    replication_factor: int


class PartitionDescription(Struct, frozen=True):
    """One partition as metadata describes it; leader -1 means none."""

    index: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]
    eligible_leaders: tuple[int, ...] | None = None
    """Replicas out of sync that may still lead without loss (KIP-966); None where it was not asked for or returned."""
    last_known_eligible_leaders: tuple[int, ...] | None = None
    """The last members of the ISR before it emptied; None as above."""


class TopicDescription(Struct, frozen=True):
    """One topic as metadata describes it, partitions by index."""

    name: str
    topic_id: bytes
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]


class BrokerDescription(Struct, frozen=True):
    """One broker's address, and whether it is registered and not at work."""

    node_id: int
    host: str
    port: int
    rack: str | None
    fenced: bool = False


class ClusterDescription(Struct, frozen=True):
    """The brokers that are there."""

    cluster_id: str | None
    controller_id: int
    brokers: tuple[BrokerDescription, ...]


class FeatureDescription(Struct, frozen=True):
    """A feature's level in force (0: none), and the lowest and highest that the broker which was asked can run with."""

    level: int
    lowest: int
    highest: int
    epoch: int = -1
    """Grows with every change of a level of the cluster; -1 where it is not known."""


class ConfigSynonym(Struct, frozen=True):
    """A place that gives a setting its value, or would if those before it did not."""

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
    """What to do with one setting: `operation` is `SET`, `DELETE`, `APPEND` or `SUBTRACT` (KIP-339)."""

    name: str
    value: str | None
    operation: int


class MorePartitions(Struct, frozen=True):
    """How many partitions a topic is to have in all, and the replicas of each new one unless the cluster chooses."""

    total: int
    assignments: Sequence[Sequence[int]] | None = None


class TopicPartition(Struct, frozen=True):
    """A partition of a topic by name."""

    topic: str
    partition: int


class Reassignment(Struct, frozen=True):
    """A partition's replicas while some of them come and others go."""

    replicas: tuple[int, ...]
    """All of them."""
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class ListedOffset(Struct, frozen=True):
    """An answer of ListOffsets: offset -1 where no record is as young as the timestamp asked for."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
"""Special timestamps of `list_offsets`: the first offset, the one after the last, the record with the highest time."""

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
"""Resource types of `describe_configs`."""

SET, DELETE, APPEND, SUBTRACT = range(4)
"""What IncrementalAlterConfigs does to a setting."""

HIGH_WATERMARK = -1
"""The offset of `delete_records` that stands for all committed records."""
