"""What a consumer group answers to offsets and administration."""

from __future__ import annotations

import pytest

from pybroker.coordinator.group import errors
from pybroker.coordinator.group.ids import GroupId
from pybroker.coordinator.group.modern.group import ConsumerGroup
from pybroker.coordinator.group.modern.member import ClassicMember, Member

TOPIC = b"t" * 16
MEMBER = Member("m", epoch=5, assigned={TOPIC: {0: 3, 1: 5}}, revoking={TOPIC: {2: 2}}, topics=frozenset({"t"}))


def group(*members: Member) -> ConsumerGroup:
    return ConsumerGroup(GroupId("g"), members={member.member_id: member for member in members})


def check_commit(of: ConsumerGroup, epoch: int, partition: int | None = None, version: int = 9) -> None:
    check = of.check_commit("m", None, epoch, version)
    if check is not None and partition is not None:
        check("t", TOPIC, partition)


def test_a_member_commits_in_its_epoch() -> None:
    assert group(MEMBER).check_commit("m", None, 5, 9) is None


@pytest.mark.parametrize(("epoch", "partition"), [(3, 0), (4, 0), (2, 2), (4, 2)])
def test_in_an_older_epoch_it_commits_what_it_has_had_since(epoch: int, partition: int) -> None:
    check_commit(group(MEMBER), epoch, partition)


@pytest.mark.parametrize(
    ("epoch", "partition", "fault"),
    [
        (2, 0, "Received member epoch 2 is older than assignment epoch 3 for partition t-0."),
        (4, 1, "Received member epoch 4 is older than assignment epoch 5 for partition t-1."),
        (4, 3, "Partition t-3 is not assigned or pending revocation for member."),
        (6, None, "Received member epoch 6 is newer than current member epoch 5."),
    ],
)
def test_a_zombies_commit_is_stale(epoch: int, partition: int | None, fault: str) -> None:
    with pytest.raises(errors.StaleMemberEpochError) as raised:
        check_commit(group(MEMBER), epoch, partition)
    assert raised.value.message == fault


def test_a_classic_members_commit_has_an_illegal_generation() -> None:
    classic = group(Member("m", epoch=5, classic=ClassicMember(45_000, ())))
    with pytest.raises(errors.IllegalGenerationError) as raised:
        check_commit(classic, 6, version=8)
    assert raised.value.message == "Received generation id 6 is newer than current member epoch 5."


def test_a_commit_too_old_to_know_epochs_is_refused() -> None:
    with pytest.raises(errors.UnsupportedVersionError):
        check_commit(group(MEMBER), 5, version=8)


def test_who_is_no_member_commits_only_while_nobody_is() -> None:
    assert group().check_commit("", None, -1, 9) is None
    with pytest.raises(errors.UnknownMemberIdError):
        group(MEMBER).check_commit("", None, -1, 9)


def test_a_member_reads_offsets_in_its_epoch_and_an_administrator_in_any() -> None:
    of = group(MEMBER)
    of.check_fetch(None, -1)
    of.check_fetch("m", 5)
    with pytest.raises(errors.StaleMemberEpochError, match="The received member epoch 4 does not match the expected"):
        of.check_fetch("m", 4)
    with pytest.raises(errors.UnknownMemberIdError):
        of.check_fetch("n", 5)


def test_a_group_is_deleted_when_nobody_is_in_it() -> None:
    group().check_delete()
    with pytest.raises(errors.NonEmptyGroupError):
        group(MEMBER).check_delete()


def test_it_knows_what_its_members_read() -> None:
    assert group(MEMBER).is_subscribed_to("t")
    assert not group(MEMBER).is_subscribed_to("u")
