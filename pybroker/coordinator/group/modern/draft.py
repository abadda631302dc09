"""A consumer group while records change it.

Owns how the parts of its value go together: the epochs of partitions follow from the members, and what was worked out
from all members is handed on where a change leaves it as it is. Must not know records: `replay` reads them.
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
    """Begins with a group, which stays as it is. Each of its mappings is copied once, however much changes."""

    def __init__(self, group: ConsumerGroup) -> None:
        self._group = group
        self._changed: dict[str, Any] = {}
        # Topics whose epochs are copied.
        self._own_epochs: set[bytes] = set()
        # Members that came, or may want something else, with what they were before: None for one that came.
        self._wants: list[tuple[Member | None, Member]] = []
        # Whether what was worked out from subscriptions can be handed on.
        self._hands_on = True

    @property
    def members(self) -> Mapping[str, Member]:
        """The members as they are now."""
        members: Mapping[str, Member] = self._changed.get("members", self._group.members)
        return members

    def set(self, **changes: Any) -> None:
        """Change fields of the group that no mapping follows from."""
        self._changed.update(changes)

    def put_member(self, member: Member) -> None:
        """Put in a member that came, or that may want something else than before."""
        before = self.members.get(member.member_id)
        self._move_epochs(before, member)
        self._own("members")[member.member_id] = member
        self._wants.append((before, member))

    def move_member(self, member: Member) -> None:
        """Put in a member that has moved on its way to the target and wants what it wanted."""
        before = self.members.get(member.member_id)
        if before is None:
            self.put_member(member)
        else:
            self._move_epochs(before, member)
            self._own("members")[member.member_id] = member

    def drop_member(self, member_id: str) -> None:
        """Take a member out, if it is there."""
        before = self.members.get(member_id)
        if before is not None:
            self._move_epochs(before, None)
            del self._own("members")[member_id]
            self._hands_on = False

    def put_target(self, member_id: str, target: Owned) -> None:
        """Say what a member is to have."""
        self._own("targets")[member_id] = target

    def drop_target(self, member_id: str) -> None:
        """Forget what a member is to have, if that is known."""
        if member_id in self._changed.get("targets", self._group.targets):
            del self._own("targets")[member_id]

    def put_regex(self, regex: str, resolved: ResolvedRegex | None) -> None:
        """Say what a pattern names; None forgets it."""
        if resolved is not None:
            self._own("regexes")[regex] = resolved
        elif regex in self._changed.get("regexes", self._group.regexes):
            del self._own("regexes")[regex]
        self._hands_on = False

    def build(self) -> ConsumerGroup:
        """Return the group after all that."""
        changed = self._changed
        if self._own_epochs:
            changed["partition_epochs"] = {topic: kept for topic, kept in changed["partition_epochs"].items() if kept}
        after = msgspec.structs.replace(self._group, **changed)
        if self._hands_on:
            if not self._wants:
                # Otherwise each step of each member to the target would cost a walk over all members.
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
        """Change the owners' epochs with a member.

        What the member had is taken away only where the epoch is still its own: a record of the next owner may stand
        before that of the last one where compaction has thinned the log out.
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
    """Hand on what was worked out from all members, with what one that came or changed makes different.

    Otherwise ten thousand members that join would each cost a walk over all.
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
