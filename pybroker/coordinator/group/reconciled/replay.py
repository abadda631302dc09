"""Applies records to a group, once.

A decision applies its records before they are committed, so that its later steps see them. Owns the link from these
records to the resulting group: when the records are committed, `replay` returns that group again. Decides nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pybroker.coordinator.group.reconciled.group import ReconciledGroup

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pybroker.coordinator.group.ids import GroupId
    from pybroker.coordinator.group.records import GroupRecord
    from pybroker.protocol.schema import Message

_AHEAD = "_ahead"
"""Attribute of a group: the key of the first record applied ahead of its commit, and the group after all records."""
_APPLIED = "_applied"
"""Attribute of the group after these records: the keys of all records but the first, by identity."""

Group = TypeVar("Group", bound=ReconciledGroup[Any, Any])
Built = TypeVar("Built", covariant=True)


class Draft(Protocol[Built]):
    """A group while records change it. Each changed mapping is copied once, whatever the number of changes."""

    def build(self) -> Built:
        """Return the group after all changes."""


class Replay(Generic[Group]):
    """Applies the records of one type of groups."""

    def __init__(
        self,
        new: Callable[[GroupId], Group],
        draft: Callable[[Group], Draft[Group]],
        changes: Mapping[type[Message], Callable[[Any, Any, Any], None]],
        group_key: type[Message],
    ) -> None:
        """`changes` maps the key of a record to the change of a draft; a tombstone of `group_key` deletes the group."""
        self._new = new
        self._draft = draft
        self._changes = changes
        self._group_key = group_key
        self.keys = tuple(changes)
        """The keys of the records."""

    def replay(self, group: Group | None, key: Any, value: Message | None) -> Group | None:
        """Return the group after a record of `keys`, None if it is deleted. `group` is None for a new group."""
        if group is None:
            if value is None:
                return None
            group = self._new(key.group_id)
        known = group.__dict__
        ahead: tuple[Message, Group] | None = known.get(_AHEAD)
        if ahead is not None and ahead[0] is key:
            return ahead[1]
        if id(key) in known.get(_APPLIED, ()):
            return group
        if value is None and type(key) is self._group_key:
            return None
        draft = self._draft(group)
        self._changes[type(key)](draft, key, value)
        return draft.build()

    def replay_ahead(self, group: Group, records: Sequence[GroupRecord]) -> Group:
        """Return the group after applying records that are not committed yet. `replay` returns it for these records.

        The records are committed together, so no state between two records is visible. They are applied in one pass:
        ten thousand records cost one iteration over the group. No record deletes the group itself.
        """
        if not records:
            return group
        draft = self._draft(group)
        for record in records:
            self._changes[type(record.key)](draft, record.key, record.value)
        return keep_ahead(group, records, draft.build())


def keep_ahead(group: Group, records: Sequence[GroupRecord], after: Group) -> Group:
    """Return the group after records that are not committed yet, for which `replay` returns it again."""
    group.__dict__[_AHEAD] = records[0].key, after
    # The keys are referenced, so that no other object gets the same identity.
    after.__dict__[_APPLIED] = {id(record.key): record.key for record in records[1:]}
    return after
