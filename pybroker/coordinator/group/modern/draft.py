"""A consumer group while records change it.

Owns the consistency of its value: the epochs of partitions are derived from the members. Other values derived from all
members are copied if a change does not affect them. Must not know records: `replay` decodes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pybroker.coordinator.group.modern.member import Member

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pybroker.coordinator.group.modern.group import ConsumerGroup
    from pybroker.coordinator.group.modern.member import Owned
    from pybroker.coordinator.group.modern.regex import ResolvedRegex

_FOLLOWS_FROM_SUBSCRIPTIONS = (
    "static_members",
    "regex_subscribers",
    "classic_members",
    "subscriptions",
    "subscribed_topics",
    "_seen",
)


class ConsumerGroupDraft:
    """Starts with a group, which is unchanged. Each changed mapping is copied once, whatever the number of changes."""

    def __init__(self, group: ConsumerGroup) -> None:
        self._group = group
        self._changed: dict[str, Any] = {}
        # Topics whose partition epochs are copied.
        self._own_epochs: set[bytes] = set()
        # New members, or members whose subscription may have changed, with their previous value: None for a new one.
        self._wants: list[tuple[Member | None, Member]] = []
        # Whether values derived from subscriptions can be copied to the new group.
        self._hands_on = True

    @property
    def members(self) -> Mapping[str, Member]:
        """The members in their current state."""
        members: Mapping[str, Member] = self._changed.get("members", self._group.members)
        return members

    def set(self, **changes: Any) -> None:
        """Change fields of the group that no mapping depends on."""
        self._changed.update(changes)

    def put_member(self, member: Member) -> None:
        """Put a new member, or a member whose subscription may have changed."""
        before = self.members.get(member.member_id)
        self._move_epochs(before, member)
        self._own("members")[member.member_id] = member
        self._wants.append((before, member))

    def move_member(self, member: Member) -> None:
        """Put a member that has reconciled further, with an unchanged subscription."""
        before = self.members.get(member.member_id)
        if before is None:
            self.put_member(member)
        else:
            self._move_epochs(before, member)
            self._own("members")[member.member_id] = member

    def drop_member(self, member_id: str) -> None:
        """Remove a member, if it exists."""
        before = self.members.get(member_id)
        if before is not None:
            self._move_epochs(before, None)
            del self._own("members")[member_id]
            self._hands_on = False

    def put_target(self, member_id: str, target: Owned) -> None:
        """Set a member's target."""
        self._own("targets")[member_id] = target

    def drop_target(self, member_id: str) -> None:
        """Remove a member's target, if there is one."""
        if member_id in self._changed.get("targets", self._group.targets):
            del self._own("targets")[member_id]

    def put_regex(self, regex: str, resolved: ResolvedRegex | None) -> None:
        """Set the resolution of a pattern; None removes it."""
        if resolved is not None:
            self._own("regexes")[regex] = resolved
        elif regex in self._changed.get("regexes", self._group.regexes):
            del self._own("regexes")[regex]
        self._hands_on = False

    def build(self) -> ConsumerGroup:
        """Return the group after all changes."""
        changed = self._changed
        if self._own_epochs:
            changed["partition_epochs"] = {topic: kept for topic, kept in changed["partition_epochs"].items() if kept}
        after = msgspec.structs.replace(self._group, **changed)
        if self._hands_on:
            if not self._wants:
                # Otherwise each reconciliation step of each member would cost an iteration over all members.
                known, kept = self._group.__dict__, after.__dict__
                for name in _FOLLOWS_FROM_SUBSCRIPTIONS:
                    if name in known:
                        kept[name] = known[name]
            elif len(self._wants) == 1:
                before, member = self._wants[0]
                _follow(self._group, after, before or Member(member.member_id), member, is_new=before is None)
        return after

    def _own(self, name: str) -> dict[Any, Any]:
        mapping: dict[Any, Any] | None = self._changed.get(name)
        if mapping is None:
            mapping = self._changed[name] = dict(getattr(self._group, name))
        return mapping

    def _epochs_of(self, topic: bytes) -> dict[int, int]:
        epochs: dict[bytes, dict[int, int]] = self._own("partition_epochs")
        if topic not in self._own_epochs:
            self._own_epochs.add(topic)
            epochs[topic] = dict(epochs.get(topic, {}))
        return epochs[topic]

    def _move_epochs(self, before: Member | None, after: Member | None) -> None:
        """Update the epochs of a member's partitions.

        A previous partition is removed only if the epoch is still the member's own: in a compacted log the record of
        the next owner may precede that of the previous one.
        """
        if before is not None and after is not None and _has_the_same(before, after):
            return
        if before is not None:
            for topic, partition in _partitions(before):
                epochs = self._epochs_of(topic)
                if epochs.get(partition) == before.epoch:
                    del epochs[partition]
        if after is not None:
            for topic, partition in _partitions(after):
                self._epochs_of(topic)[partition] = after.epoch


def _follow(group: ConsumerGroup, after: ConsumerGroup, before: Member, member: Member, *, is_new: bool) -> None:
    """Copy values derived from all members, updated for one new or changed member.

    Otherwise each of ten thousand joining members would cost an iteration over all.
    """
    known, kept = group.__dict__, after.__dict__
    same_topics = False
    if (counts := known.get("subscriptions")) is not None:
        same_topics = member.topics in counts and (
            is_new or before.topics == member.topics or counts[before.topics] > 1
        )
        changed = dict(counts)
        changed[member.topics] = changed.get(member.topics, 0) + 1
        if not is_new:
            changed[before.topics] -= 1
            if not changed[before.topics]:
                del changed[before.topics]
        kept["subscriptions"] = changed
    if (classic := known.get("classic_members")) is not None:
        left = not is_new and before.classic is not None
        kept["classic_members"] = classic + (member.classic is not None) - left
    unchanged = [
        ("static_members", before.instance_id == member.instance_id),
        ("regex_subscribers", before.regex == member.regex),
        ("subscribed_topics", same_topics),
        ("_seen", same_topics),
    ]
    for name, holds in unchanged:
        if holds and name in known:
            kept[name] = known[name]


def _has_the_same(one: Member, other: Member) -> bool:
    return one.epoch == other.epoch and one.assigned == other.assigned and one.revoking == other.revoking


def _partitions(member: Member) -> Sequence[tuple[bytes, int]]:
    return [
        (topic, partition)
        for held in (member.assigned, member.revoking)
        for topic, partitions in held.items()
        for partition in partitions
    ]
