"""Sticky: the examples of Kafka's documentation, and the user data that members send."""

from __future__ import annotations

import pytest

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.assignors import GroupMember, StickyAssignor
from pybroker.client.assignors.assignor import Assignment
from pybroker.client.assignors.holdings import Claim
from pybroker.client.assignors.sticky import decode_claim, encode_claim

EVERY = ("t0", "t1", "t2", "t3")


def shares(assigned: Assignment) -> dict[str, set[str]]:
    return {member: {f"{p.topic}p{p.partition}" for p in held} for member, held in assigned.items()}


def after(assigned: Assignment, members: dict[str, GroupMember]) -> dict[str, GroupMember]:
    """The members as they join again, with what they got in generation 1."""
    return {m: GroupMember(members[m].topics, encode_claim(assigned[m], 1), generation=1) for m in members}


def test_a_member_that_leaves_moves_only_its_own_partitions() -> None:
    partitions = dict.fromkeys(EVERY, 2)
    members = {member: GroupMember(EVERY) for member in ("c0", "c1", "c2")}
    first = StickyAssignor().assign(partitions, members)
    assert shares(first) == {
        "c0": {"t0p0", "t1p1", "t3p0"},
        "c1": {"t0p1", "t2p0", "t3p1"},
        "c2": {"t1p0", "t2p1"},
    }
    staying = after(first, {member: members[member] for member in ("c0", "c2")})
    second = StickyAssignor().assign(partitions, staying)
    assert [len(held) for held in second.values()] == [4, 4]
    assert all(set(first[member]) < set(held) for member, held in second.items())


def test_different_wishes_are_balanced_as_far_as_they_allow() -> None:
    partitions = {"t0": 1, "t1": 2, "t2": 3}
    members = {"c0": GroupMember(EVERY[:1]), "c1": GroupMember(EVERY[:2]), "c2": GroupMember(EVERY[:3])}
    first = StickyAssignor().assign(partitions, members)
    assert shares(first) == {"c0": {"t0p0"}, "c1": {"t1p0", "t1p1"}, "c2": {"t2p0", "t2p1", "t2p2"}}
    staying = after(first, {member: members[member] for member in ("c1", "c2")})
    assert shares(StickyAssignor().assign(partitions, staying)) == {
        "c1": {"t1p0", "t1p1", "t0p0"},
        "c2": {"t2p0", "t2p1", "t2p2"},
    }


def test_a_claim_comes_back_from_its_bytes() -> None:
    held = (TopicPartition("a", 1), TopicPartition("a", 0), TopicPartition("b", 2))
    assert decode_claim(encode_claim(held, 7)) == Claim(held, 7)
    assert decode_claim(encode_claim(held, 7)[:-4]) == Claim(held, None), "version 0 names no generation"


@pytest.mark.parametrize("raw", [b"", b"\0\0\0\1", b"\0\0\0\1\0\5ab", b"\0\0\0\1\xff\xff"])
def test_a_claim_that_cannot_be_read_claims_nothing(raw: bytes) -> None:
    assert decode_claim(raw) == Claim((), -1)


def test_the_user_data_names_what_the_assignor_was_given_last() -> None:
    assignor = StickyAssignor()
    assert assignor.user_data() is None
    assignor.on_assignment([TopicPartition("a", 1)], 5)
    assert decode_claim(assignor.user_data() or b"") == Claim((TopicPartition("a", 1),), 5)
