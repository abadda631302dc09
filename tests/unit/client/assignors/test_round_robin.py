"""Round-robin: the examples of the book and of Kafka's documentation."""

from __future__ import annotations

from pybroker.client.assignors import GroupMember, RoundRobinAssignor


def shares(partitions: dict[str, int], members: dict[str, GroupMember]) -> dict[str, list[str]]:
    assigned = RoundRobinAssignor().assign(partitions, members)
    return {member: [f"{p.topic}-{p.partition}" for p in held] for member, held in assigned.items()}


def test_two_members_share_two_topics_of_three_partitions() -> None:
    members = {"c1": GroupMember(("t0", "t1")), "c0": GroupMember(("t0", "t1"))}
    assert shares({"t1": 3, "t0": 3}, members) == {"c0": ["t0-0", "t0-2", "t1-1"], "c1": ["t0-1", "t1-0", "t1-2"]}


def test_who_does_not_want_a_topic_is_passed_over() -> None:
    members = {"c0": GroupMember(("t0",)), "c1": GroupMember(("t0", "t1")), "c2": GroupMember(("t0", "t1", "t2"))}
    assert shares({"t0": 1, "t1": 2, "t2": 3}, members) == {
        "c0": ["t0-0"],
        "c1": ["t1-0"],
        "c2": ["t1-1", "t2-0", "t2-1", "t2-2"],
    }
