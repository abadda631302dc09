"""GroupState: groups and offsets of one partition, including open transactions, with an undo journal.

Owns every change of them. Decides nothing. Must not know records, except for the values that it stores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pybroker.coordinator.group.pending import PendingOffsets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pybroker.coordinator.group.ids import GroupId
    from pybroker.coordinator.group.modern.settings import ConsumerGroupSettings
    from pybroker.coordinator.group.pending import PendingOffset
    from pybroker.coordinator.group.settings import GroupSettings, OwnSettings
    from pybroker.coordinator.group.streams.settings import StreamsGroupSettings
    from pybroker.coordinator.group.view import Group, TopicInfo, Topics
    from pybroker.protocol.messages.group_records.offset_commit import OffsetCommitValue

_NO_OFFSETS: Mapping[tuple[str, int], OffsetCommitValue] = {}


class GroupState:
    """A `GroupView` that can be changed. Groups are immutable values: a change replaces one."""

    __slots__ = ("_groups", "_journal", "_of_groups", "_offsets", "_open", "_pending", "_topics", "settings")

    def __init__(
        self,
        settings: GroupSettings,
        topics: Callable[[], Topics],
        of_groups: Callable[[], Mapping[str, OwnSettings]],
    ) -> None:
        """`of_groups` returns the current settings of the groups that have settings of their own."""
        self.settings = settings
        self._topics = topics
        self._of_groups = of_groups
        self._groups: dict[GroupId, Group] = {}
        # Invariant: no group has an empty mapping.
        self._offsets: dict[str, dict[tuple[str, int], OffsetCommitValue]] = {}
        self._pending = PendingOffsets(self._put)
        # The groups with open transactions: mostly empty, which commits and loads check first.
        self._open = self._pending.by_group
        # (table, key, previous value or None), the oldest change first; None while changes are not recorded.
        self._journal: list[tuple[dict[Any, Any], Any, Any]] | None = None

    def consumer_settings(self, group_id: str) -> ConsumerGroupSettings:
        """Return the settings of a group of KIP-848: its own take precedence over the broker's."""
        own = self._of_groups().get(group_id)
        return self.settings.consumer if own is None else own.consumer

    def streams_settings(self, group_id: str) -> StreamsGroupSettings:
        """Return the settings of a streams group: its own take precedence over the broker's."""
        own = self._of_groups().get(group_id)
        return self.settings.streams if own is None else own.streams

    @property
    def topics(self) -> Mapping[str, TopicInfo]:
        """The cluster's topics by name."""
        return self._topics().by_name

    @property
    def topic_by_id(self) -> Mapping[bytes, str]:
        """The names of the cluster's topics by id."""
        return self._topics().name_by_id

    @property
    def topics_version(self) -> int:
        """Offset in the metadata log of the creation of the newest topic."""
        return self._topics().version

    @property
    def groups(self) -> Mapping[GroupId, Group]:
        """All groups by id."""
        return self._groups

    def group(self, group_id: str) -> Group | None:
        """Return a group, None if there is none."""
        return self._groups.get(group_id)  # type: ignore[call-overload, no-any-return]

    def offsets(self, group_id: str) -> Mapping[tuple[str, int], OffsetCommitValue]:
        """Return the committed offsets of a group by (topic, partition)."""
        return self._offsets.get(group_id, _NO_OFFSETS)

    def offsets_in_place(self, group_id: str) -> dict[tuple[str, int], OffsetCommitValue] | None:
        """Return the mapping of a group's offsets, None if it has none; changes to it are not in the journal."""
        return self._offsets.get(group_id)

    def all_offsets(self) -> Mapping[str, Mapping[tuple[str, int], OffsetCommitValue]]:
        """Return the committed offsets of all groups."""
        return self._offsets

    @property
    def has_open_transactions(self) -> bool:
        """Whether an open transaction has pending offsets."""
        return bool(self._open)

    def pending(self, group_id: str) -> Mapping[tuple[str, int], Mapping[int, PendingOffset]]:
        """Return a group's offsets of open transactions by (topic, partition) and producer id."""
        return self._pending.of_group(group_id)

    def put_group(self, group_id: GroupId, group: Group | None) -> None:
        """Replace a group; None removes it."""
        self._put(self._groups, group_id, group)

    def put_offset(self, group_id: str, topic: str, partition: int, value: OffsetCommitValue | None) -> None:
        """Replace a committed offset; None removes it together with the pending offsets of open transactions."""
        if self._open:
            if value is None:
                self._pending.forget(group_id, (topic, partition))
            else:
                self._pending.overtake(group_id, (topic, partition))
        self._put_offset(group_id, topic, partition, value)

    def put_pending(
        self, producer_id: int, group_id: str, partition: tuple[str, int], value: OffsetCommitValue
    ) -> None:
        """Add an offset that is applied when the producer's transaction commits."""
        self._pending.add(producer_id, group_id, partition, value)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply the offsets of a producer's transaction, unless a later commit was applied, or drop them."""
        for group_id, partition, offset in self._pending.end(producer_id):
            if committed and not offset.is_overtaken:
                self._pending.overtake(group_id, partition, offset.number)
                self._put_offset(group_id, *partition, offset.value)

    def _put_offset(self, group_id: str, topic: str, partition: int, value: OffsetCommitValue | None) -> None:
        offsets = self._offsets.get(group_id)
        if offsets is not None and value is not None:  # the path of loading and of most commits
            key = (topic, partition)
            if self._journal is not None:
                self._journal.append((offsets, key, offsets.get(key)))
            offsets[key] = value
            return
        if offsets is None:
            if value is None:
                return
            offsets = {}
            self._put(self._offsets, group_id, offsets)
        self._put(offsets, (topic, partition), value)
        if not offsets:
            self._put(self._offsets, group_id, None)

    def begin(self) -> None:
        """Start recording changes."""
        self._journal = []

    def commit(self) -> None:
        """Keep the changes since `begin`."""
        self._journal = None

    def undo(self) -> None:
        """Undo the changes since `begin`."""
        journal, self._journal = self._journal, None
        for table, key, before in reversed(journal or ()):
            if before is None:
                table.pop(key, None)
            else:
                table[key] = before

    def _put(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        if self._journal is not None:
            self._journal.append((table, key, table.get(key)))
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value
