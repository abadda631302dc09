"""The delta from one metadata image to the next, made of records.

Owns the mapping from record types to parts of the image. Topics, brokers, users, quotas and tokens have deltas of their
own. Must not know the writer of the records. `apply` is the only code that applies records to metadata: the
controller's machine, its replay and every broker call it.

A delta copies a changed mapping once, when it is built. Of the delegation tokens, which are many and created one at a
time, only the changed part is copied (`pybroker.metadata.persistent_map`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pybroker.metadata.cluster_delta import ClusterDelta
from pybroker.metadata.errors import RecordError
from pybroker.metadata.image import (
    TOPIC_RESOURCE,
    AccessControlEntry,
    AclsImage,
    ConfigResource,
    ConfigsImage,
    FeaturesImage,
    MetadataImage,
    ProducerIdsImage,
)
from pybroker.metadata.quotas import ClientQuotasDelta
from pybroker.metadata.scram_delta import ScramDelta
from pybroker.metadata.tokens_delta import TokensDelta
from pybroker.metadata.topics_delta import TopicsDelta

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pybroker.metadata.image import PartitionImage
    from pybroker.protocol.messages.records.access_control_entry import AccessControlEntryRecord
    from pybroker.protocol.messages.records.config import ConfigRecord
    from pybroker.protocol.messages.records.feature_level import FeatureLevelRecord
    from pybroker.protocol.messages.records.producer_ids import ProducerIdsRecord
    from pybroker.protocol.messages.records.remove_access_control_entry import RemoveAccessControlEntryRecord
    from pybroker.protocol.messages.records.remove_topic import RemoveTopicRecord
    from pybroker.protocol.schema import Message


class MetadataDelta:
    """A base image and the changes by records applied to it."""

    __slots__ = (
        "_epoch",
        "_features",
        "_features_epoch",
        "_kraft_version",
        "_next_producer_id",
        "_offset",
        "acls",
        "base",
        "cluster",
        "configs",
        "quotas",
        "scram",
        "tokens",
        "topics",
    )

    def __init__(self, base: MetadataImage) -> None:
        self.base = base
        self.cluster = ClusterDelta(base.cluster)
        self.topics = TopicsDelta(base.topics)
        self.scram = ScramDelta(base.scram)
        self.quotas = ClientQuotasDelta(base.quotas)
        # All configurations of each changed resource; empty if none are left.
        self.configs: dict[ConfigResource, dict[str, str]] = {}
        # New entries by id; None for removed entries.
        self.acls: dict[bytes, AccessControlEntry | None] = {}
        self.tokens = TokensDelta(base.delegation_tokens)
        self._features: dict[str, int] | None = None
        # Invariant: the offset of the last batch that changed a level; None until that batch's end is reached.
        self._features_epoch: int | None = base.features.epoch
        self._kraft_version = base.features.kraft_version
        self._next_producer_id = base.producer_ids.next_producer_id
        self._offset = base.offset
        self._epoch = base.epoch

    def apply(self, record: Message) -> None:
        """Apply one record. Raises `RecordError`; the delta must not be built after that."""
        change = _CHANGES.get(type(record).__name__)
        if change is None:
            raise RecordError(f"{record}: unknown metadata record")
        change(self, record)

    def reach(self, offset: int, epoch: int) -> None:
        """Set the offset and leader epoch of the last applied record. The offset is the end of a batch."""
        if self._features_epoch is None:
            self._features_epoch = offset
        self._offset = offset
        self._epoch = epoch

    def changed_partitions(self, image: MetadataImage) -> Iterator[tuple[bytes, int, PartitionImage, PartitionImage]]:
        """Yield the partitions that differ between the base and `image`, without new and removed ones.

        `image` is the result of `build`. Each element is topic id, index, and the partition before and after.
        """
        for topic_id in self.topics.changed:
            old, new = self.base.topics.by_id.get(topic_id), image.topics.by_id.get(topic_id)
            if old is None or new is None:
                continue
            for index, after in new.partitions.items():
                before = old.partitions.get(index)
                if before is not None and before is not after:
                    yield topic_id, index, before, after

    def note_kraft_version(self, level: int) -> None:
        """Set the level of kraft.version, which is in no metadata record."""
        if level != self._kraft_version:
            self._kraft_version, self._features_epoch = level, None

    def become(self, image: MetadataImage) -> None:
        """Record the changes from the base to a snapshot's `image`, in a delta without changes."""
        base = self.base
        self.cluster.become(image.cluster)
        self.topics.become(image.topics)
        self.scram.become(image.scram)
        self.quotas.become(image.quotas)
        before, after = base.configs.by_resource, image.configs.by_resource
        for resource in before.keys() | after.keys():
            if before.get(resource) != after.get(resource):
                self.configs[resource] = dict(after.get(resource, {}))
        old, new = base.acls.by_id, image.acls.by_id
        self.acls = {key: new.get(key) for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
        self.tokens.become(image.delegation_tokens)
        if image.features != base.features:
            self._features = dict(image.features.levels)
            self._features_epoch = image.features.epoch
            self._kraft_version = image.features.kraft_version
        self._next_producer_id = image.producer_ids.next_producer_id
        self._offset, self._epoch = image.offset, image.epoch

    def build(self) -> MetadataImage:
        """Return the new image. Unchanged parts are the base's objects."""
        base = self.base
        return MetadataImage(
            offset=self._offset,
            epoch=self._epoch,
            cluster=self.cluster.build(),
            topics=self.topics.build(),
            configs=self._build_configs(),
            features=self._build_features(),
            producer_ids=(
                base.producer_ids
                if self._next_producer_id == base.producer_ids.next_producer_id
                else ProducerIdsImage(next_producer_id=self._next_producer_id)
            ),
            scram=self.scram.build(),
            acls=self._build_acls(),
            delegation_tokens=self.tokens.build(),
            quotas=self.quotas.build(),
        )

    def _build_acls(self) -> AclsImage:
        if not self.acls:
            return self.base.acls
        merged = {**self.base.acls.by_id, **self.acls}
        return AclsImage(by_id={key: entry for key, entry in merged.items() if entry is not None})

    def _build_configs(self) -> ConfigsImage:
        if not self.configs:
            return self.base.configs
        merged: dict[ConfigResource, Mapping[str, str]] = {**self.base.configs.by_resource, **self.configs}
        return ConfigsImage(by_resource={resource: configs for resource, configs in merged.items() if configs})

    def _build_features(self) -> FeaturesImage:
        before = self.base.features
        if self._features is None and self._kraft_version == before.kraft_version:
            return before
        epoch = self._offset if self._features_epoch is None else self._features_epoch
        levels = before.levels if self._features is None else self._features
        return FeaturesImage(levels=levels, epoch=epoch, kraft_version=self._kraft_version)

    def _apply_config(self, record: ConfigRecord) -> None:
        resource = ConfigResource(record.resource_type, record.resource_name)
        configs = self.configs.get(resource)
        if configs is None:
            configs = self.configs[resource] = dict(self.base.configs.by_resource.get(resource, {}))
        if record.value is None:
            configs.pop(record.name, None)
        else:
            configs[record.name] = record.value

    def _apply_remove_topic(self, record: RemoveTopicRecord) -> None:
        # Removing a topic removes its configurations without records of their own, as in Kafka.
        resource = ConfigResource(TOPIC_RESOURCE, self.topics.apply_remove_topic(record))
        if resource in self.configs or resource in self.base.configs.by_resource:
            self.configs[resource] = {}

    def _apply_feature_level(self, record: FeatureLevelRecord) -> None:
        if self._features is None:
            self._features = dict(self.base.features.levels)
        self._features_epoch = None
        self._features[record.name] = record.feature_level

    def _apply_producer_ids(self, record: ProducerIdsRecord) -> None:
        if record.next_producer_id <= self._next_producer_id:
            raise RecordError(f"{record}: producer ids are allocated up to {self._next_producer_id}")
        self._next_producer_id = record.next_producer_id

    def _apply_acl(self, record: AccessControlEntryRecord) -> None:
        if self._acl(record.id) is not None:
            raise RecordError(f"{record}: an access control entry with this id exists already")
        self.acls[record.id] = AccessControlEntry(
            record.resource_type,
            record.resource_name,
            record.pattern_type,
            record.principal,
            record.host,
            record.operation,
            record.permission_type,
        )

    def _apply_remove_acl(self, record: RemoveAccessControlEntryRecord) -> None:
        if self._acl(record.id) is None:
            raise RecordError(f"{record}: no access control entry has this id")
        self.acls[record.id] = None

    def _acl(self, acl_id: bytes) -> AccessControlEntry | None:
        return self.acls[acl_id] if acl_id in self.acls else self.base.acls.by_id.get(acl_id)

    def _apply_nothing(self, record: Message) -> None:
        """Change nothing: a NoOpRecord only advances the log (KIP-835)."""


# By class name, so that modules of unused record types are not imported.
_CHANGES: dict[str, Callable[[MetadataDelta, Any], None]] = {
    "AccessControlEntryRecord": MetadataDelta._apply_acl,
    "BrokerRegistrationChangeRecord": lambda delta, record: delta.cluster.apply_change(record),
    "ClearElrRecord": lambda delta, record: delta.topics.apply_clear_elr(record),
    "ClientQuotaRecord": lambda delta, record: delta.quotas.apply(record),
    "ConfigRecord": MetadataDelta._apply_config,
    "DelegationTokenRecord": lambda delta, record: delta.tokens.apply(record),
    "FeatureLevelRecord": MetadataDelta._apply_feature_level,
    "NoOpRecord": MetadataDelta._apply_nothing,
    "PartitionChangeRecord": lambda delta, record: delta.topics.apply_partition_change(record),
    "PartitionRecord": lambda delta, record: delta.topics.apply_partition(record),
    "ProducerIdsRecord": MetadataDelta._apply_producer_ids,
    "RegisterBrokerRecord": lambda delta, record: delta.cluster.apply_register(record),
    "RegisterControllerRecord": lambda delta, record: delta.cluster.apply_register_controller(record),
    "RemoveAccessControlEntryRecord": MetadataDelta._apply_remove_acl,
    "RemoveDelegationTokenRecord": lambda delta, record: delta.tokens.apply_remove(record),
    "RemoveTopicRecord": MetadataDelta._apply_remove_topic,
    "RemoveUserScramCredentialRecord": lambda delta, record: delta.scram.apply_remove(record),
    "TopicRecord": lambda delta, record: delta.topics.apply_topic(record),
    "UnregisterBrokerRecord": lambda delta, record: delta.cluster.apply_unregister(record),
    "UserScramCredentialRecord": lambda delta, record: delta.scram.apply(record),
}
