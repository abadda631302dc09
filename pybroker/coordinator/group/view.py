"""The input of a group coordinator's decisions: groups and offsets of one partition, topics and settings.

Owns only these types. A function that gets a `GroupView` must not change it; it returns changes as records.
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
    from pybroker.coordinator.group.streams.settings import StreamsGroupSettings
    from pybroker.protocol.messages.group_records.offset_commit import OffsetCommitValue


class TopicInfo(msgspec.Struct, frozen=True, dict=True):
    """The properties of a topic that groups use. Caches values derived from these properties while the topic exists."""

    topic_id: bytes
    partitions: int
    """Number of partitions."""
    racks: tuple[tuple[str, ...], ...] = ()
    """Racks of the replicas of each partition; empty if no broker has a rack."""


class Topics(msgspec.Struct, frozen=True):
    """The cluster's topics at one moment; never modified."""

    by_name: Mapping[str, TopicInfo] = {}
    name_by_id: Mapping[bytes, str] = {}
    version: int = -1
    """Offset of the metadata record that created the newest topic. A lookup in an older version may lack that topic."""


class Group(Protocol):
    """The methods of a group of any type that offset commits and administration use."""

    @property
    def id(self) -> GroupId:
        """The group's id."""

    @property
    def type_name(self) -> str:
        """Kafka's name of the type: classic, consumer, streams."""

    @property
    def state_name(self) -> str:
        """Kafka's name of the state."""

    @property
    def protocol_type(self) -> str | None:
        """The protocol type; None until a member has set it."""

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, version: int
    ) -> Callable[[str, bytes, int], None] | None:
        """Raise an error if a member may not commit; `generation` is the member's epoch in KIP-848.

        The returned function raises an error if the member may not commit an offset of (topic, topic id, partition).
        None allows all partitions.
        """

    def check_transactional_commit(
        self, member_id: str, instance_id: str | None, generation: int
    ) -> Callable[[str, bytes, int], None] | None:
        """As `check_commit`, for a commit in a transaction (KIP-447). A commit without a member id and generation is
        not checked.
        """

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise an error if a member may not fetch offsets."""

    def check_offset_delete(self) -> None:
        """Raise an error if offsets may not be deleted."""

    def check_delete(self) -> None:
        """Raise an error if the group may not be deleted."""

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member subscribes to the topic, or may subscribe if subscriptions are unknown."""

    def retention_begins(self, committed_ms: int) -> int | None:
        """Return when the retention of an offset committed at `committed_ms` begins; None while it is kept."""

    def build_tombstones(self) -> Iterable[GroupRecord]:
        """Return the tombstones of the group."""

    def timer_keys(self) -> Iterable[Hashable]:
        """Yield the keys of timers that the group may have set."""


class GroupView(Protocol):
    """A read-only view of one partition of `__consumer_offsets`."""

    @property
    def settings(self) -> GroupSettings:
        """The settings."""

    def consumer_settings(self, group_id: str) -> ConsumerGroupSettings:
        """Return the settings of a KIP-848 group: the group's own settings override the broker's."""

    def streams_settings(self, group_id: str) -> StreamsGroupSettings:
        """Return the settings of a streams group: the group's own settings override the broker's."""

    @property
    def topics(self) -> Mapping[str, TopicInfo]:
        """The cluster's topics by name."""

    @property
    def topic_by_id(self) -> Mapping[bytes, str]:
        """The names of the cluster's topics by id."""

    @property
    def topics_version(self) -> int:
        """Offset of the metadata record that created the newest topic."""

    @property
    def groups(self) -> Mapping[GroupId, Group]:
        """All groups by id."""

    def group(self, group_id: str) -> Group | None:
        """Return a group, or None if it does not exist."""

    def offsets(self, group_id: str) -> Mapping[tuple[str, int], OffsetCommitValue]:
        """Return the committed offsets of a group by (topic, partition)."""

    def pending(self, group_id: str) -> Mapping[tuple[str, int], Mapping[int, PendingOffset]]:
        """Return a group's offsets of open transactions by (topic, partition) and producer id."""
