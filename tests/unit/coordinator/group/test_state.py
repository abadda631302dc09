"""What is undone leaves no trace, and what is kept stays."""

from __future__ import annotations

from pybroker.coordinator.group.classic.group import ClassicGroup
from pybroker.coordinator.group.ids import GroupId
from pybroker.coordinator.group.state import GroupState
from pybroker.coordinator.group.view import Topics
from pybroker.protocol.messages.group_records.offset_commit import OffsetCommitValue
from tests.support.groups import group_settings

G = GroupId("g")


def new_state() -> GroupState:
    return GroupState(group_settings(), Topics, dict)


def test_undoing_takes_back_every_change_in_the_other_order() -> None:
    state = new_state()
    first, second = ClassicGroup(id=G), ClassicGroup(id=G, protocol_type="x")
    state.put_group(G, first)
    state.put_offset("g", "t", 0, OffsetCommitValue(offset=1))
    state.begin()
    state.put_offset("g", "t", 0, OffsetCommitValue(offset=2))
    state.put_offset("g", "t", 0, None)
    state.put_offset("g", "t", 1, OffsetCommitValue(offset=3))
    state.put_offset("h", "t", 0, OffsetCommitValue(offset=4))
    state.put_group(G, second)
    state.put_group(G, None)
    state.undo()
    assert state.group("g") is first
    assert dict(state.offsets("g")) == {("t", 0): OffsetCommitValue(offset=1)}
    assert set(state.all_offsets()) == {"g"}


def test_what_is_committed_is_not_undone() -> None:
    state = new_state()
    state.begin()
    state.put_group(G, ClassicGroup(id=G))
    state.commit()
    state.undo()
    assert state.group("g") is not None


def test_a_group_whose_last_offset_goes_has_none() -> None:
    state = new_state()
    state.put_offset("g", "t", 0, None)
    assert set(state.all_offsets()) == set()
    state.put_offset("g", "t", 0, OffsetCommitValue())
    state.put_offset("g", "t", 0, None)
    assert set(state.all_offsets()) == set()
    assert dict(state.offsets("g")) == {}
