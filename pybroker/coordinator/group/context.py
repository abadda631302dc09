"""GroupContext: the current settings and topics that the machines of groups read.

Owns the broker's group settings, the groups' own settings, and the cluster's topics in the form that decisions read.
Follows the metadata image. Must not know the coordinator: machines reference the context, and not the reverse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.machine import GroupMachine
from pybroker.coordinator.group.settings import build_own_settings
from pybroker.coordinator.group.view import TopicInfo, Topics
from pybroker.metadata.image import EMPTY_IMAGE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.coordinator.group.settings import GroupSettings, OwnSettings
    from pybroker.metadata.image import MetadataImage, TopicImage, TopicsImage


class GroupContext:
    """Settings and topics. Used from one event loop."""

    def __init__(self, settings: GroupSettings) -> None:
        self._settings = settings
        self._image = EMPTY_IMAGE
        # The settings of the groups in `_image` that have settings of their own.
        self._of_groups: dict[str, OwnSettings] = {}
        # The topics in the form of decisions, and the parts of `_image` from which they are built.
        self._topics = Topics()
        self._seen: tuple[TopicsImage, Mapping[int, str]] = EMPTY_IMAGE.topics, {}
        # Racks by broker id, of the newest image.
        self._racks: Mapping[int, str] = {}
        # Offset of the first image with the newest topic.
        self._topics_version = -1

    def follow(self, image: MetadataImage) -> None:
        """Apply a newer image."""
        before, self._image = self._image, image
        if image.configs is not before.configs:
            self._take_settings()
        if image.cluster is not before.cluster:
            brokers = image.cluster.brokers.values()
            self._racks = {broker.id: broker.rack for broker in brokers if broker.rack is not None}
        if image.topics is not before.topics and image.topics.by_id.keys() - before.topics.by_id.keys():
            self._topics_version = image.offset

    def reconfigure(self, settings: GroupSettings) -> None:
        """Apply the broker's changed configuration; the owner of existing machines updates them."""
        self._settings = settings
        self._take_settings()

    def build_machine(self) -> GroupMachine:
        """Return a machine that reads this context."""
        return GroupMachine(self._settings, self.topics, lambda: self._of_groups)

    def topics(self) -> Topics:
        """Return the cluster's topics."""
        topics, racks = self._seen
        if topics is not self._image.topics or racks != self._racks:
            self._seen = self._image.topics, self._racks
            self._topics = _build_topics(self._image.topics, self._racks, self._topics_version, self._topics.by_name)
        return self._topics

    def _take_settings(self) -> None:
        settings = self._settings
        self._of_groups = {
            group: build_own_settings(settings, own) for group, own in self._image.configs.of_groups().items()
        }


def _build_topics(
    topics: TopicsImage, racks: Mapping[int, str], version: int, known: Mapping[str, TopicInfo]
) -> Topics:
    """Return the topics; an unchanged topic is the same object, with its cached values."""
    by_name = {}
    for name, topic in topics.by_name.items():
        info = TopicInfo(topic.topic_id, len(topic.partitions), _racks(topic, racks))
        before = known.get(name)
        by_name[name] = info if before is None or before != info else before
    return Topics(by_name, {topic_id: topic.name for topic_id, topic in topics.by_id.items()}, version)


def _racks(topic: TopicImage, racks: Mapping[int, str]) -> tuple[tuple[str, ...], ...]:
    if not racks:
        return ()
    return tuple(
        tuple(racks[broker] for broker in partition.replicas if broker in racks)
        for partition in topic.partitions.values()
    )
