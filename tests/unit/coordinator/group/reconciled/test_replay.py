"""Records that a decision has applied ahead are applied once."""

from __future__ import annotations

from pybroker.coordinator.group.ids import GroupId
from pybroker.coordinator.group.streams.group import StreamsGroup
from pybroker.coordinator.group.streams.member import StreamsMember
from pybroker.coordinator.group.streams.records import build_current, build_group_tombstones, build_member
from pybroker.coordinator.group.streams.replay import REPLAY

MEMBER = StreamsMember("m", epoch=1, process_id="p")
RECORDS = [build_member("g", MEMBER), build_current("g", MEMBER)]


def test_committed_records_return_the_group_of_the_decision() -> None:
    group = StreamsGroup(GroupId("g"))
    after = REPLAY.replay_ahead(group, RECORDS)
    assert after.members == {"m": MEMBER}
    assert group.members == {}
    committed: StreamsGroup | None = group
    for record in RECORDS:
        committed = REPLAY.replay(committed, record.key, record.value)
        assert committed is after


def test_loaded_records_build_the_same_group() -> None:
    loaded: StreamsGroup | None = None
    for record in RECORDS:
        loaded = REPLAY.replay(loaded, record.key, record.value)
    assert loaded == REPLAY.replay_ahead(StreamsGroup(GroupId("g")), RECORDS)


def test_tombstones_delete_the_group_and_those_of_a_missing_group_do_nothing() -> None:
    group: StreamsGroup | None = REPLAY.replay_ahead(StreamsGroup(GroupId("g")), RECORDS)
    for tombstone in build_group_tombstones("g", ["m"]):
        group = REPLAY.replay(group, tombstone.key, None)
    assert group is None
