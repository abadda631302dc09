"""What is looked up belongs to one leadership of this broker, from its beginning to its end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pybroker.handlers import list_offsets
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest

VERSION = 7
KNOWN_END = 5


class Partition:
    """A replica whose role changes while it is asked: when the high watermark has been read."""

    lags_its_epoch = False
    log_start_offset = 0

    def __init__(self, role_after: str, epoch_after: int) -> None:
        self.role, self.leader_epoch = "leader", 5
        self._after = role_after, epoch_after

    @property
    def high_watermark(self) -> int:
        self.role, self.leader_epoch = self._after
        return KNOWN_END


def query(monkeypatch: pytest.MonkeyPatch, partition: Partition) -> Any:
    monkeypatch.setattr(list_offsets, "leading_partition", lambda *_: partition)
    requested = ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=list_offsets.LATEST)
    context: Any = SimpleNamespace(version=VERSION)
    request = ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=[])
    return list_offsets._respond("t", requested, 1, request, context)


def test_the_end_is_answered_with_the_epoch_of_the_leader_that_knows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    response = query(monkeypatch, Partition("leader", 5))
    assert (response.error_code, response.offset, response.leader_epoch) == (ErrorCode.NONE, KNOWN_END, 5)


@pytest.mark.parametrize(("role", "epoch"), [("follower", 6), ("leader", 7)])
def test_a_leader_that_is_replaced_meanwhile_answers_no_end_under_the_next_epoch(
    monkeypatch: pytest.MonkeyPatch, role: str, epoch: int
) -> None:
    response = query(monkeypatch, Partition(role, epoch))
    assert (response.error_code, response.offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
