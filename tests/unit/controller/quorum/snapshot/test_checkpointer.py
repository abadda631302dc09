"""Snapshots made while the log is in use, and what they make superfluous."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pybroker.controller.quorum.native import Log, build_record_batch
from pybroker.controller.quorum.snapshot.checkpointer import Checkpointer
from pybroker.controller.quorum.snapshot.snapshot_policy import SnapshotPolicy
from pybroker.controller.quorum.snapshot.snapshots import list_snapshots, newest_snapshot, write_snapshot
from pybroker.metadata.image import FeaturesImage, MetadataImage

IMAGE = MetadataImage(offset=9, epoch=2, features=FeaturesImage(levels={"metadata.version": 25}, epoch=3))
SMALL = SnapshotPolicy(bytes_between=10, interval_ms=0, retention_bytes=0, retention_ms=-1)


def a_log(directory: Path) -> Log:
    log = Log.open(
        directory=str(directory / "__cluster_metadata-0"),
        segment_bytes=200,
        segment_ms=1 << 40,
        segment_index_bytes=1 << 16,
        index_interval_bytes=4096,
        now_ms=0,
    )
    for number in range(20):
        log.append(build_record_batch([b"%50d" % number], 0), 1, 0)
    return log


async def test_one_that_is_due_is_made_once_and_read_back(tmp_path: Path) -> None:
    checkpointer = Checkpointer(tmp_path, SMALL, lambda: 5)
    assert not checkpointer.is_due
    checkpointer.note(10)
    assert checkpointer.is_due
    first, second = await asyncio.gather(
        checkpointer.take(IMAGE, 7, asyncio.to_thread), checkpointer.take(IMAGE, 7, asyncio.to_thread)
    )
    assert (first, second) == ((10, 2), None)
    assert not checkpointer.is_due
    found = newest_snapshot(tmp_path)
    assert found is not None
    assert (found.id, found.raft_index, found.features_epoch) == (first, 7, 3)


async def test_the_loop_serves_others_between_any_two_batches(tmp_path: Path) -> None:
    steps: list[str] = []

    async def elsewhere(work: Callable[..., Any], *arguments: Any) -> Any:
        steps.append(work.__name__)
        return work(*arguments)

    await Checkpointer(tmp_path, SMALL, lambda: 5).take(IMAGE, 7, elsewhere)
    assert steps == ["SnapshotWriter", "write", "write", "write", "finish", "abandon"]


async def test_a_disk_that_refuses_costs_the_snapshot_and_leaves_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def elsewhere(work: Callable[..., Any], *arguments: Any) -> Any:
        if work.__name__ == "finish":
            raise OSError(28, "No space left on device")
        return work(*arguments)

    checkpointer = Checkpointer(tmp_path, SMALL, lambda: 5)
    assert await checkpointer.take(IMAGE, 7, elsewhere) is None
    assert "Failed to write the snapshot" in caplog.text
    assert "[Errno 28]" in caplog.text
    assert list(tmp_path.iterdir()) == []
    assert await checkpointer.take(IMAGE, 7, asyncio.to_thread) == (10, 2)


def test_old_ones_go_with_the_log_below_the_next(tmp_path: Path) -> None:
    log = a_log(tmp_path)
    for end_offset in (4, 9, 14):
        write_snapshot(tmp_path, IMAGE, end_offset, 1, -1, 0)
    assert Checkpointer(tmp_path, SMALL, lambda: 5).clean(log) == (14, 1)
    assert list_snapshots(tmp_path) == [(14, 1)]
    assert log.log_start_offset == 14
    assert log.log_end_offset == 20
    assert [path for path in (tmp_path / "__cluster_metadata-0").iterdir() if path.suffix == ".deleted"] == []
    log.close()


def test_within_the_limits_all_stay(tmp_path: Path) -> None:
    log = a_log(tmp_path)
    for end_offset in (4, 9):
        write_snapshot(tmp_path, IMAGE, end_offset, 1, -1, 0)
    policy = SMALL._replace(retention_bytes=1 << 30)
    assert Checkpointer(tmp_path, policy, lambda: 5).clean(log) is None
    assert list_snapshots(tmp_path) == [(4, 1), (9, 1)]
    assert log.log_start_offset == 0
    log.close()
