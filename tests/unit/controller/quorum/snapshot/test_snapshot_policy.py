"""When a snapshot is due, and when an old one may go."""

from __future__ import annotations

import pytest

from pybroker.controller.quorum.snapshot.snapshot_policy import SnapshotPace, SnapshotPolicy, Stored, may_go

POLICY = SnapshotPolicy(bytes_between=100, interval_ms=1000, retention_bytes=500, retention_ms=10_000)


def test_it_is_due_after_so_many_bytes_and_then_anew() -> None:
    pace = SnapshotPace(POLICY, 0)
    pace.note(99)
    assert not pace.is_due(0)
    pace.note(1)
    assert pace.is_due(0)
    pace.taken(0)
    assert not pace.is_due(0)


def test_it_is_due_after_so_long_where_there_is_anything_new() -> None:
    pace = SnapshotPace(POLICY, 0)
    assert not pace.is_due(5000)
    pace.note(1)
    assert not pace.is_due(999)
    assert pace.is_due(1000)
    pace.taken(1000)
    pace.note(1)
    assert not pace.is_due(1999)


def test_an_interval_of_0_makes_none_for_its_age() -> None:
    pace = SnapshotPace(POLICY._replace(interval_ms=0), 0)
    pace.note(99)
    assert not pace.is_due(1 << 60)


@pytest.mark.parametrize(
    ("snapshots", "log_bytes", "goes"),
    [
        ([], 10_000, False),
        ([Stored(400, 0)], 10_000, False),
        ([Stored(200, 95_000), Stored(200, 99_000)], 100, False),
        ([Stored(200, 95_000), Stored(200, 99_000)], 101, True),
        ([Stored(1, 90_000), Stored(1, 99_000)], 0, False),
        ([Stored(1, 89_999), Stored(1, 99_000)], 0, True),
    ],
)
def test_the_oldest_goes_for_its_size_or_its_age_and_never_the_only_one(
    snapshots: list[Stored], log_bytes: int, *, goes: bool
) -> None:
    assert may_go(snapshots, log_bytes, POLICY, 100_000) is goes


def test_without_limits_all_stay() -> None:
    endless = POLICY._replace(retention_bytes=-1, retention_ms=-1)
    assert not may_go([Stored(1 << 60, 0), Stored(1 << 60, 0)], 1 << 60, endless, 1 << 60)
