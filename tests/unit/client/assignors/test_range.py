"""Range: the examples of the book and of Kafka's documentation."""

from __future__ import annotations

from pybroker.client.assignors import GroupMember, RangeAssignor


def shares(partitions: dict[str, int], members: dict[str, GroupMember]) -> dict[str, list[str]]:
    assigned = RangeAssignor().assign(partitions, members)
    return {member: [f"{p.topic}-{p.partition}" for p in held] for member, held in assigned.items()}


def test_ten_partitions_for_four_members() -> None:
    members = {f"c{n}": GroupMember(("t",)) for n in range(4)}
    assigned = RangeAssignor().assign({"t": 10}, members)
    assert [[p.partition for p in held] for held in assigned.values()] == [[0, 1, 2], [3, 4, 5], [6, 7], [8, 9]]


def test_a_member_too_many_gets_nothing() -> None:
    members = {f"c{n}": GroupMember(("t",)) for n in range(5)}
    assert [len(held) for held in RangeAssignor().assign({"t": 4}, members).values()] == [1, 1, 1, 1, 0]


def test_the_same_number_of_several_topics_goes_to_the_same_member() -> None:
    members = {"c1": GroupMember(("a", "b")), "c0": GroupMember(("a", "b"))}
    assert shares({"a": 3, "b": 3}, members) == {"c0": ["a-0", "a-1", "b-0", "b-1"], "c1": ["a-2", "b-2"]}


def test_static_members_come_first_by_instance() -> None:
    members = {"a": GroupMember(("t",)), "z": GroupMember(("t",), instance_id="i")}
    assert shares({"t": 3}, members) == {"z": ["t-0", "t-1"], "a": ["t-2"]}


def test_only_who_wants_a_topic_gets_of_it() -> None:
    members = {"c0": GroupMember(("a",)), "c1": GroupMember(("b", "gone"))}
    assert shares({"a": 1, "b": 2}, members) == {"c0": ["a-0"], "c1": ["b-0", "b-1"]}
