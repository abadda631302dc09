"""What is answered about a partition belongs to one leadership of this broker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pybroker.handlers import delete_records, offset_for_leader_epoch
from pybroker.handlers.errors import ApiError
from pybroker.handlers.leaders import still_leads
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.delete_records import DeleteRecordsPartition
from pybroker.protocol.messages.offset_for_leader_epoch import OffsetForLeaderPartition


class Partition:
    """A replica that follows from the moment in which it is asked something."""

    def __init__(self) -> None:
        self.role, self.leader_epoch, self.index = "leader", 5, 0

    @property
    def high_watermark(self) -> int:
        self.role, self.leader_epoch = "follower", 6
        return 10

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        return epoch, self.high_watermark


@pytest.mark.parametrize(("role", "epoch"), [("follower", 5), ("leader", 6)])
def test_a_leadership_that_has_ended_is_refused(role: str, epoch: int) -> None:
    partition: Any = SimpleNamespace(role=role, leader_epoch=epoch)
    with pytest.raises(ApiError) as refused:
        still_leads(partition, 5)
    assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_the_end_of_an_epoch_is_not_answered_by_who_follows_by_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_for_leader_epoch, "leading_partition", lambda *_: Partition())
    requested = OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=4)
    context: Any = SimpleNamespace(version=4)
    assert offset_for_leader_epoch._respond("t", requested, context).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_nothing_is_deleted_by_who_follows_by_now(monkeypatch: pytest.MonkeyPatch) -> None:
    deleted: list[object] = []
    retention = SimpleNamespace(delete_records=lambda *what: deleted.append(what))
    monkeypatch.setattr(delete_records, "_leading", lambda *_: Partition())
    context: Any = SimpleNamespace(services=SimpleNamespace(retention=retention))
    response: Any = delete_records._move("t", DeleteRecordsPartition(partition_index=0, offset=3), context)
    assert (response.error_code, deleted) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, [])
