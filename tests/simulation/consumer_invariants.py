"""What holds of a group after every event, whatever has happened.

Owns a second account of who has what, kept by what has changed from value to value of the group, so that looking after
every event costs what the event changed. Knows neither clients nor the schedule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pybroker.coordinator.group.classic.group import ClassicGroup
from pybroker.coordinator.group.modern.group import ConsumerGroup, ConsumerGroupState
from pybroker.coordinator.group.modern.member import Member
from pybroker.coordinator.group.modern.reconciliation import NOBODY
from pybroker.coordinator.group.reconciled.member import JOIN_EPOCH, STATIC_LEAVE_EPOCH
from pybroker.protocol.messages.group_records.offset_commit import OffsetCommitValue

Held = set[tuple[bytes, int]]


class Invariants:
    """One owner a partition, generations and epochs only rise, no committed offset is lost."""

    def __init__(self) -> None:
        # Who has a partition, as far as the values of the group have shown.
        self._owners: dict[tuple[bytes, int], str] = {}
        # What was acknowledged of each partition's offset.
        self.acknowledged: dict[tuple[str, int], int] = {}

    def check_offsets(self, committed: Mapping[tuple[str, int], OffsetCommitValue]) -> None:
        """Look whether what was acknowledged is there."""
        for partition, offset in self.acknowledged.items():
            found = committed.get(partition)
            assert found is not None, f"the committed offset of {partition} is lost"
            assert found.offset >= offset, f"the committed offset of {partition} has gone back"

    def check_group(self, before: Any, group: Any) -> None:
        """Look at a group that was `before` a moment ago."""
        if isinstance(group, ConsumerGroup):
            was = before if isinstance(before, ConsumerGroup) else None
            self._check_owners({} if was is None else was.members, group)
            assert group.targets.keys() <= group.members.keys(), "somebody is to have something who is no member"
            if group.state is ConsumerGroupState.STABLE:
                epochs = {member.epoch for member in group.members.values()} | {group.assignment_epoch}
                assert epochs == {group.epoch}, "it is said to be stable and is not"
            if was is not None and was.members:
                _check_epochs(was, group)
        else:
            self._owners.clear()
        if before is not None and group is not None and before.members:
            assert _epoch(group) >= _epoch(before), "an epoch or a generation has gone back"

    def _check_owners(self, before: Mapping[str, Member], group: ConsumerGroup) -> None:
        owners = self._owners
        left: Held = set()
        for member_id, member in before.items():
            if group.members.get(member_id) is not member:
                for partition in _held(member):
                    del owners[partition]
                    left.add(partition)
        for member_id, member in group.members.items():
            if before.get(member_id) is not member:
                for partition in _held(member):
                    owner = owners.setdefault(partition, member_id)
                    assert owner == member_id, f"{owner} and {member_id} both have partition {partition[1]}"
                    assert group.partition_epoch(*partition) == member.epoch, "a partition has not its owner's epoch"
        for partition in left - owners.keys():
            assert group.partition_epoch(*partition) == NOBODY, "a partition has an epoch and no owner"
        assert sum(map(len, group.partition_epochs.values())) == len(owners)


def _check_epochs(before: ConsumerGroup, group: ConsumerGroup) -> None:
    assert group.assignment_epoch >= before.assignment_epoch, "the target's epoch has gone back"
    assert group.assignment_epoch <= group.epoch, "there is a target of an epoch that is not there yet"
    for member_id, member in group.members.items():
        was = before.members.get(member_id)
        if was is None or was is member or was.epoch <= JOIN_EPOCH:
            continue
        begins_anew = member.epoch in (JOIN_EPOCH, STATIC_LEAVE_EPOCH)
        assert begins_anew or member.epoch >= was.epoch, "a member's epoch has gone back"


def _epoch(group: ConsumerGroup | ClassicGroup) -> int:
    return group.epoch if isinstance(group, ConsumerGroup) else group.generation


def _held(member: Member) -> Iterator[tuple[bytes, int]]:
    for held in (member.assigned, member.revoking):
        for topic, partitions in held.items():
            for partition in partitions:
                yield topic, partition
