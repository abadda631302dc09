"""How large requests are cut."""

from __future__ import annotations

import msgspec

from pybroker.machine.parts import MAX_WEIGHT, length_of_lists, parts, parts_of_lists


class Topic(msgspec.Struct):
    name: str
    partitions: list[int]


def test_a_part_weighs_no_more_than_it_may_unless_it_is_one_item() -> None:
    assert list(parts([1, 2, 3, 9, 1, 1], lambda item: item, 4)) == [[1, 2], [3], [9], [1, 1]]
    assert list(parts([], lambda _: 1)) == []
    assert list(parts([0, 0, 0], lambda item: item, 2)) == [[0, 0], [0]]


def test_lists_of_structs_are_cut_and_keep_their_owners() -> None:
    topics = [Topic("a", [1]), Topic("none", []), Topic("b", list(range(MAX_WEIGHT + 1))), Topic("c", [1])]
    cut = list(parts_of_lists(topics, "partitions"))
    assert [[(topic.name, len(topic.partitions)) for topic in part] for part in cut] == [
        [("a", 1)],
        [("b", MAX_WEIGHT)],
        [("b", 1), ("c", 1)],
    ]
    assert length_of_lists(topics, "partitions") == MAX_WEIGHT + 3
    assert [topic.partitions[-1:] for part in cut for topic in part] == [[1], [MAX_WEIGHT - 1], [MAX_WEIGHT], [1]]
