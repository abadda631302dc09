"""What decisions see: the groups and offsets of one partition, the cluster's topics, the settings.

Owns the shapes alone. Whatever takes a `GroupView` reads it and changes nothing; changes are records.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.coordinator.group.ids import GroupId
    from pybroker.coordinator.group.modern.settings import ConsumerGroupSettings
    from pybroker.coordinator.group.pending import PendingOffset
    from pybroker.coordinator.group.records import GroupRecord
    from pybroker.coordinator.group.settings import GroupSettings
    from pybroker.protocol.messages.group_records.offset_commit import OffsetCommitValue


class TopicInfo(msgspec.Struct, frozen=True, dict=True):
    """A topic, as far as groups care. Remembers what is derived from it for as long as the cluster has it."""

    topic_id: bytes
    partitions: int
    """How many."""
    racks: tuple[tuple[str, ...], ...] = ()
    """Of the replicas of each partition; empty where no broker has a rack."""


class Topics(msgspec.Struct, frozen=True):
    """The cluster's topics at one moment; never written after it is made."""

    by_name: Mapping[str, TopicInfo] = {}
    name_by_id: Mapping[bytes, str] = {}
    version: int = -1
    """Offset in the metadata log at which the last topic was new: what was looked up before may lack it."""


class Group(Protocol):
    """What offsets and administration ask of a group, of whatever type it is."""

    @property
    def id(self) -> GroupId:
        """The group's id."""

    @property
    def type_name(self) -> str:
        """Kafka's name of the type: classic, consumer."""

    @property
    def state_name(self) -> str:
        """Kafka's name of the state."""

    @property
    def protocol_type(self) -> str | None:
        """What the group is for; None while nobody has said."""

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, version: int
    ) -> Callable[[str, bytes, int], None] | None:
        """Raise why a member may not commit; `generation` is the member's epoch in KIP-848.

        What is returned raises why it may not commit (topic, topic id, partition); None where it may commit all.
        """

    def check_transactional_commit(
        self, member_id: str, instance_id: str | None, generation: int
    ) -> Callable[[str, bytes, int], None] | None:
        """As `check_commit`, for a commit as part of a transaction (KIP-447): one that names neither a member nor a
        generation is not checked.
        """

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise why a member may not read offsets."""

    def check_offset_delete(self) -> None:
        """Raise why offsets may not be deleted."""

    def check_delete(self) -> None:
        """Raise why the group may not be deleted."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member reads the topic by subscription; where that is not known, whether one may."""

    def retention_begins(self, committed_ms: int) -> int | None:
        """Return when the retention of an offset committed at that time begins; None while offsets are kept."""

    def build_tombstones(self) -> Iterable[GroupRecord]:
        """Make the records by which the group goes."""

    def timer_keys(self) -> Iterable[Hashable]:
        """Yield the keys of timers that the group may have set."""


class GroupView(Protocol):
    """One partition of `__consumer_offsets`, to be read."""

    @property
    def settings(self) -> GroupSettings:
        """The settings."""

    def consumer_settings(self, group_id: str) -> ConsumerGroupSettings:
        """Return the settings of a group of KIP-848: its own over the broker's."""

    @property
    def topics(self) -> Mapping[str, TopicInfo]:
        """The cluster's topics by name."""

    @property
    def topic_by_id(self) -> Mapping[bytes, str]:
        """The names of the cluster's topics by id."""

    @property
    def topics_version(self) -> int:
        """Offset in the metadata log at which the last topic was new."""

    @property
    def groups(self) -> Mapping[GroupId, Group]:
        """All groups by id."""

    def group(self, group_id: str) -> Group | None:
        """Return a group, None where there is none."""

    def offsets(self, group_id: str) -> Mapping[tuple[str, int], OffsetCommitValue]:
        """Return the committed offsets of a group by (topic, partition)."""

    def pending(self, group_id: str) -> Mapping[tuple[str, int], Mapping[int, PendingOffset]]:
        """Return a group's offsets of open transactions by (topic, partition) and producer id."""
