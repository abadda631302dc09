"""The delta of topics and partitions.

Applies TopicRecord, PartitionRecord, PartitionChangeRecord, ClearElrRecord and RemoveTopicRecord.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.metadata.errors import RecordError
from pybroker.metadata.image import PartitionImage, TopicImage, TopicsImage
from pybroker.metadata.index_delta import IndexDelta

if TYPE_CHECKING:
    from pybroker.protocol.messages.records.clear_elr import ClearElrRecord
    from pybroker.protocol.messages.records.partition import PartitionRecord
    from pybroker.protocol.messages.records.partition_change import PartitionChangeRecord
    from pybroker.protocol.messages.records.remove_topic import RemoveTopicRecord
    from pybroker.protocol.messages.records.topic import TopicRecord

_LEADER_UNCHANGED = -2


class TopicsDelta:
    """The created, changed and removed topics."""

    __slots__ = ("_base", "_names", "changed", "removed")

    def __init__(self, base: TopicsImage) -> None:
        self._base = base
        # All partitions of each created or changed topic.
        self.changed: dict[bytes, dict[int, PartitionImage]] = {}
        # Removed topics of the base image. Invariant: no id is also in `changed`.
        self.removed: dict[bytes, TopicImage] = {}
        # Invariant: the names of exactly the topics in `changed`.
        self._names: dict[bytes, str] = {}

    @property
    def created(self) -> list[bytes]:
        """Ids of the topics that are not in the base image."""
        return [topic_id for topic_id in self.changed if topic_id not in self._base.by_id]

    def apply_topic(self, record: TopicRecord) -> None:
        """Add a topic without partitions."""
        if record.topic_id in self._base.by_id or record.topic_id in self.changed:
            raise RecordError(f"{record}: the topic id is already in use")
        self.changed[record.topic_id] = {}
        self._names[record.topic_id] = record.name

    def apply_partition(self, record: PartitionRecord) -> None:
        """Add or replace a partition."""
        self._partitions_of(record.topic_id, record)[record.partition_id] = PartitionImage(
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            replicas=tuple(record.replicas),
            isr=tuple(record.isr),
            directories=tuple(record.directories),
            removing_replicas=tuple(record.removing_replicas),
            adding_replicas=tuple(record.adding_replicas),
            leader_recovery_state=record.leader_recovery_state,
            eligible_leader_replicas=tuple(record.eligible_leader_replicas or ()),
            last_known_elr=tuple(record.last_known_elr or ()),
        )

    def apply_partition_change(self, record: PartitionChangeRecord) -> None:
        """Change the fields that the record has. A record with a leader always starts a leader epoch (KIP-631)."""
        partitions = self._partitions_of(record.topic_id, record)
        before = partitions.get(record.partition_id)
        if before is None:
            raise RecordError(f"{record}: the partition does not exist")
        names_leader = record.leader != _LEADER_UNCHANGED
        recovery = record.leader_recovery_state
        partitions[record.partition_id] = PartitionImage(
            leader=record.leader if names_leader else before.leader,
            leader_epoch=before.leader_epoch + names_leader,
            partition_epoch=before.partition_epoch + 1,
            replicas=_or(record.replicas, before.replicas),
            isr=_or(record.isr, before.isr),
            directories=before.directories if record.directories is None else tuple(record.directories),
            removing_replicas=_or(record.removing_replicas, before.removing_replicas),
            adding_replicas=_or(record.adding_replicas, before.adding_replicas),
            leader_recovery_state=before.leader_recovery_state if recovery < 0 else recovery,
            eligible_leader_replicas=_or(record.eligible_leader_replicas, before.eligible_leader_replicas),
            last_known_elr=_or(record.last_known_elr, before.last_known_elr),
        )

    def apply_clear_elr(self, record: ClearElrRecord) -> None:
        """Clear the eligible leader replicas (KIP-966) of one topic or of all."""
        for topic_id, name in self._there():
            if record.topic_name in ("", name):
                self._clear_elr(topic_id, record)

    def _there(self) -> list[tuple[bytes, str]]:
        """Return the id and name of every existing topic."""
        base = ((topic.topic_id, topic.name) for topic in self._base.by_id.values())
        removed = self._names.keys() | self.removed.keys()
        old = [(topic_id, name) for topic_id, name in base if topic_id not in removed]
        return [*old, *self._names.items()]

    def _clear_elr(self, topic_id: bytes, record: ClearElrRecord) -> None:
        partitions = self.changed[topic_id] if topic_id in self.changed else self._base.by_id[topic_id].partitions
        for index, partition in list(partitions.items()):
            if partition.eligible_leader_replicas or partition.last_known_elr:
                self._partitions_of(topic_id, record)[index] = msgspec.structs.replace(
                    partition,
                    partition_epoch=partition.partition_epoch + 1,
                    eligible_leader_replicas=(),
                    last_known_elr=(),
                )

    def apply_remove_topic(self, record: RemoveTopicRecord) -> str:
        """Remove a topic and return its name."""
        topic = self._base.by_id.get(record.topic_id)
        changed = self.changed.pop(record.topic_id, None)
        if changed is None and (topic is None or record.topic_id in self.removed):
            raise RecordError(f"{record}: the topic does not exist")
        if topic is not None:
            self.removed[record.topic_id] = topic
            self._names.pop(record.topic_id, None)
            return topic.name
        return self._names.pop(record.topic_id)

    def become(self, image: TopicsImage) -> None:
        """Record the changes from the base to `image`, in a delta without changes.

        Equal partitions stay the same objects.
        """
        for topic_id, topic in self._base.by_id.items():
            kept = image.by_id.get(topic_id)
            if kept is None or kept.name != topic.name:
                self.removed[topic_id] = topic
        for topic_id, topic in image.by_id.items():
            before = self._base.by_id.get(topic_id)
            if before == topic:
                continue
            old = {} if before is None else before.partitions
            self.changed[topic_id] = {
                index: old[index] if old.get(index) == partition else partition
                for index, partition in topic.partitions.items()
            }
            self._names[topic_id] = topic.name

    def build(self) -> TopicsImage:
        """Return the new image; the base itself without changes."""
        if not self.changed and not self.removed:
            return self._base
        by_name, by_id = dict(self._base.by_name), dict(self._base.by_id)
        index = IndexDelta(self._base.index)
        for topic_id, topic in self.removed.items():
            del by_id[topic_id]
            del by_name[topic.name]
            index.replace(topic_id, topic.partitions, {})
        for topic_id, partitions in self.changed.items():
            name, before = self._names[topic_id], by_id.get(topic_id)
            in_order = dict(sorted(partitions.items()))
            by_id[topic_id] = by_name[name] = TopicImage(name=name, topic_id=topic_id, partitions=in_order)
            index.replace(topic_id, {} if before is None else before.partitions, in_order)
        return TopicsImage(by_name=by_name, by_id=by_id, index=index.build())

    def _partitions_of(self, topic_id: bytes, record: msgspec.Struct) -> dict[int, PartitionImage]:
        partitions = self.changed.get(topic_id)
        if partitions is None:
            topic = self._base.by_id.get(topic_id)
            if topic is None or topic_id in self.removed:
                raise RecordError(f"{record}: the topic does not exist")
            partitions = self.changed[topic_id] = dict(topic.partitions)
            self._names[topic_id] = topic.name
        return partitions


def _or(new: list[int] | None, old: tuple[int, ...]) -> tuple[int, ...]:
    return old if new is None else tuple(new)
