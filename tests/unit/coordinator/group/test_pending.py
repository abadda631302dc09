"""Which of several commits of a partition counts in the end."""

from __future__ import annotations

from typing import Any

from pybroker.coordinator.group.pending import PendingOffsets
from pybroker.protocol.messages.group_records.offset_commit import OffsetCommitValue

T = ("t", 0)


def put(table: dict[Any, Any], key: Any, value: Any) -> None:
    if value is None:
        del table[key]
    else:
        table[key] = value


def value(offset: int) -> OffsetCommitValue:
    return OffsetCommitValue(offset=offset)


def test_an_end_takes_the_offsets_of_its_producer_alone_and_leaves_no_table_behind() -> None:
    pending = PendingOffsets(put)
    pending.add(7, "g", T, value(1))
    pending.add(7, "h", T, value(2))
    pending.add(8, "g", T, value(3))
    assert [(group, one.value.offset) for group, _, one in pending.end(7)] == [("g", 1), ("h", 2)]
    assert set(pending.by_group) == {"g"}
    assert set(pending.of_group("g")[T]) == {8}
    pending.end(8)
    assert pending.by_group == {}
    assert pending.end(8) == []


def test_a_commit_that_counts_overtakes_those_before_it() -> None:
    pending = PendingOffsets(put)
    pending.add(7, "g", T, value(1))
    pending.add(8, "g", T, value(2))
    second = pending.of_group("g")[T][8].number
    pending.overtake("g", T, second)
    assert [one.is_overtaken for one in pending.of_group("g")[T].values()] == [True, False]
    pending.add(7, "g", T, value(3))
    assert [one.is_overtaken for one in pending.of_group("g")[T].values()] == [False, False], "it commits again"
    pending.overtake("g", T)
    assert [one.is_overtaken for one in pending.of_group("g")[T].values()] == [True, True]


def test_a_partition_is_forgotten_in_every_transaction() -> None:
    pending = PendingOffsets(put)
    for producer in (7, 8):
        pending.add(producer, "g", T, value(1))
        pending.add(producer, "g", ("t", 1), value(2))
    pending.forget("g", T)
    pending.forget("g", ("t", 9))
    assert set(pending.of_group("g")) == {("t", 1)}
    assert [one.value.offset for _, _, one in pending.end(7)] == [2]
