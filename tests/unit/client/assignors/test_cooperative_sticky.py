"""Cooperative sticky: nothing is given to a new owner before the old one has let go."""

from __future__ import annotations

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.assignors import CooperativeStickyAssignor, GroupMember


def partitions(*indexes: int) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition("t", index) for index in indexes)


def test_what_changes_hands_waits_for_the_next_rebalance() -> None:
    assignor = CooperativeStickyAssignor()
    alone = {"a": GroupMember(("t",), owned=partitions(0, 1, 2, 3), generation=1)}
    joined = alone | {"b": GroupMember(("t",))}
    first = assignor.assign({"t": 4}, joined)
    assert first == {"a": list(partitions(0, 1)), "b": []}
    let_go = {"a": GroupMember(("t",), owned=partitions(0, 1), generation=2), "b": GroupMember(("t",), generation=2)}
    assert assignor.assign({"t": 4}, let_go) == {"a": list(partitions(0, 1)), "b": list(partitions(2, 3))}


def test_with_different_wishes_too() -> None:
    held = partitions(0, 1, 2, 3)
    members = {"a": GroupMember(("t",), owned=held, generation=1), "b": GroupMember(("t", "u"), generation=1)}
    assigned = CooperativeStickyAssignor().assign({"t": 4, "u": 1}, members)
    assert assigned["b"] == [TopicPartition("u", 0)]
    assert set(assigned["a"]) < set(held)


def test_the_generation_is_encoded_in_four_bytes() -> None:
    assignor = CooperativeStickyAssignor()
    assert assignor.user_data() == b"\xff\xff\xff\xff"
    assignor.on_assignment(partitions(0), 3)
    assert assignor.user_data() == b"\0\0\0\3"
