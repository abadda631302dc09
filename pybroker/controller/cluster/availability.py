"""Partition changes when a broker leaves, returns, or loses directories.

Owns the selection of partitions; `partition_changes` computes each change. The cost depends on the broker's partitions,
not on the cluster's (`pybroker.metadata.partition_index`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.controller.cluster.elections import ElectionRules
from pybroker.controller.cluster.partition_changes import build_change
from pybroker.metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION
from pybroker.metadata.image import TOPIC_RESOURCE
from pybroker.metadata.replica_directories import directory_of
from pybroker.protocol.messages.records.partition_change import PartitionChangeRecord

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from pybroker.controller.cluster.elections import Usable
    from pybroker.controller.cluster.settings import ClusterSettings
    from pybroker.metadata.image import MetadataImage, PartitionImage, TopicImage
    from pybroker.metadata.partition_index import PartitionKey

MIN_INSYNC_REPLICAS = "min.insync.replicas"


class Rules:
    """The election rules of every topic in one state of the cluster, each computed once."""

    def __init__(self, image: MetadataImage, settings: ClusterSettings) -> None:
        self._configs = image.configs
        self._settings = settings
        self.has_eligible_replicas = has_eligible_replicas(image)
        self._made: dict[bytes, ElectionRules] = {}

    def __call__(self, topic: TopicImage) -> ElectionRules:
        """Return the election rules of a topic."""
        rules = self._made.get(topic.topic_id)
        if rules is None:
            known, configs = self._settings.config_rules, self._configs.of(TOPIC_RESOURCE, topic.name)
            first = topic.partitions.get(0)
            factor = len(first.replicas) if first is not None else 1
            rules = self._made[topic.topic_id] = ElectionRules(
                min_isr=min(known.min_insync_replicas(configs), factor),
                has_eligible_replicas=self.has_eligible_replicas,
                is_unclean=known.elects_uncleanly(configs),
            )
        return rules


def has_eligible_replicas(image: MetadataImage) -> bool:
    """Return whether eligible leader replicas are enabled."""
    return image.features.levels.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0


def after_leaving(
    image: MetadataImage,
    broker: int,
    usable: Usable,
    settings: ClusterSettings,
    directories: Container[bytes] | None = None,
    *,
    is_lost: bool = False,
) -> Iterator[PartitionChangeRecord]:
    """Yield the changes of partitions when `broker` cannot lead any more; `usable` already excludes this broker.

    With `directories`, only the broker's replicas in these directories are affected. With `is_lost`, its replicas may
    have lost records, so they are not eligible leaders either (KIP-966).
    """
    rules = Rules(image, settings)
    lost = (broker,) if is_lost else ()
    for topic, index, partition in _named(image, image.topics.index.of_broker(broker)):
        if broker not in partition.isr and not is_lost:
            continue
        if directories is not None and directory_of(partition, broker) not in directories:
            continue
        isr = tuple(replica for replica in partition.isr if replica != broker)
        wanted = msgspec.structs.replace(partition, isr=isr)
        change = build_change(topic.topic_id, index, partition, wanted, usable=usable, rules=rules(topic), lost=lost)
        if change is not None:
            yield change


def after_unclean_stop(image: MetadataImage, broker: int, usable: Usable) -> Iterator[PartitionChangeRecord]:
    """Yield a new leader epoch for each partition that `broker` leads and can lead after an unclean stop.

    The end of a log may be lost. New records then have the offsets of lost records, and only the leader epoch
    distinguishes them (KIP-101, KIP-320). Kafka writes two records a partition: no leader when it fences the broker,
    and the leader again when it unfences the broker. A broker that registers unfenced needs one record.
    """
    for topic, index, partition in _named(image, image.topics.index.of_broker(broker)):
        if partition.leader == broker and usable(broker, directory_of(partition, broker)):
            yield PartitionChangeRecord(partition_id=index, topic_id=topic.topic_id, leader=broker)


def after_returning(image: MetadataImage, usable: Usable, settings: ClusterSettings) -> Iterator[PartitionChangeRecord]:
    """Yield the changes of partitions without a leader after another broker has become `usable`."""
    rules = Rules(image, settings)
    for topic, index, partition in _named(image, sorted(image.topics.index.leaderless)):
        change = build_change(topic.topic_id, index, partition, partition, usable=usable, rules=rules(topic))
        if change is not None:
            yield change


def _named(image: MetadataImage, keys: Iterable[PartitionKey]) -> Iterator[tuple[TopicImage, int, PartitionImage]]:
    by_id = image.topics.by_id
    for topic_id, index in keys:
        topic = by_id[topic_id]
        yield topic, index, topic.partitions[index]
