"""WriteTxnMarkers: what is refused before anything is written, and large requests, which are cut."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from pybroker.coordinator.runtime.errors import NotCoordinatorError
from pybroker.handlers.write_txn_markers import _AT_ONCE, write_txn_markers
from pybroker.machine.reply import Reply
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.support.loop_turns import short_slices, turns_of
from tests.support.stepped_loop import run_stepped

OK, FENCED, NOBODY = ErrorCode.NONE, ErrorCode.TRANSACTION_COORDINATOR_FENCED, ErrorCode.INVALID_REQUEST
GROUPS = "__consumer_offsets"
MANY = 20 * _AT_ONCE


class Broker:
    """Partitions 0 to 9 of `t` and of `__consumer_offsets`, whose markers are committed in the next turn."""

    def __init__(self, *, is_stuck: bool = False) -> None:
        self.is_stuck = is_stuck
        self.written: list[tuple[Any, ...]] = []
        self.ended: list[tuple[Any, ...]] = []
        self.in_hand = self.most_in_hand = 0

    def get(self, topic: str, index: int) -> Any:
        return (topic, index) if topic in ("t", GROUPS) and 0 <= index < 10 else None

    async def write(self, ended: Sequence[tuple[Any, ...]]) -> list[int]:
        self.written += ended
        return [FENCED if epoch else OK for _partition, _id, epoch, *_ in ended]

    def complete_transaction(self, partition: int, *of_marker: Any) -> Reply:
        self.ended.append((partition, *of_marker))
        if partition == 9:
            raise NotCoordinatorError
        self.in_hand += 1
        self.most_in_hand = max(self.most_in_hand, self.in_hand)
        reply = Reply()
        if not self.is_stuck:
            asyncio.get_running_loop().call_soon(self._commit, reply)
        return reply

    def _commit(self, reply: Reply) -> None:
        self.in_hand -= 1
        reply(None, None)


def marker(*named: tuple[str, list[int]], producer: tuple[int, int] = (7, 0)) -> WritableTxnMarker:
    topics = [WritableTxnMarkerTopic(name=name, partition_indexes=indexes) for name, indexes in named]
    return WritableTxnMarker(producer_id=producer[0], producer_epoch=producer[1], topics=topics)


async def query(broker: Broker, *markers: WritableTxnMarker) -> list[Any]:
    """The codes that a request is answered with, in its shape."""
    context: Any = SimpleNamespace(
        version=1,
        authorizer=None,
        services=SimpleNamespace(
            slices=short_slices(),
            partitions=broker,
            markers=broker,
            groups=broker,
            config=SimpleNamespace(request_timeout_ms=30_000),
        ),
    )
    response: WriteTxnMarkersResponse = await write_txn_markers(WriteTxnMarkersRequest(markers=list(markers)), context)
    assert [one.producer_id for one in response.markers] == [one.producer_id for one in markers]
    return [
        [(topic.name, [(one.partition_index, one.error_code) for one in topic.partitions]) for topic in one.topics]
        for one in response.markers
    ]


async def test_each_partition_of_each_marker_has_its_own_code() -> None:
    broker = Broker()
    codes = await query(
        broker,
        marker(("t", [0, 10, 0]), (GROUPS, [9, 1])),
        marker(("unknown", [0]), ("t", [1]), producer=(8, 1)),
        marker(),
    )
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == [
        [("t", [(0, OK), (10, unknown), (0, OK)]), (GROUPS, [(9, ErrorCode.NOT_LEADER_OR_FOLLOWER), (1, OK)])],
        [("unknown", [(0, unknown)]), ("t", [(1, FENCED)])],
        [],
    ]
    assert [one[0] for one in broker.written] == [("t", 0), ("t", 1)]
    assert [one[0] for one in broker.ended] == [9, 1]


async def test_a_partition_that_a_marker_names_twice_is_written_once_and_a_marker_that_comes_twice_twice() -> None:
    broker = Broker()
    twice = marker(("t", [0, 0]), (GROUPS, [1]), ("t", [0]), (GROUPS, [1]))
    codes = await query(broker, twice, twice)
    assert codes == [[("t", [(0, OK)] * 2), (GROUPS, [(1, OK)]), ("t", [(0, OK)]), (GROUPS, [(1, OK)])]] * 2
    assert [one[0] for one in broker.written] == [("t", 0)] * 2
    assert [one[0] for one in broker.ended] == [1, 1]


@pytest.mark.parametrize("producer", [(-1, 5), (7, -1), (-1, -1), (-2, 0), (7, -5)])
async def test_a_marker_of_no_producer_is_refused_and_not_written(producer: tuple[int, int]) -> None:
    broker = Broker()
    codes = await query(broker, marker(("t", [0, 10]), (GROUPS, [1]), producer=producer), marker(("t", [2])))
    assert codes == [[("t", [(0, NOBODY), (10, NOBODY)]), (GROUPS, [(1, NOBODY)])], [("t", [(2, OK)])]]
    assert [one[0] for one in broker.written] == [("t", 2)]
    assert broker.ended == []


@pytest.mark.parametrize(
    ("markers", "expected"),
    [
        ([marker()] * MANY, []),
        ([marker(*[("t", [])] * MANY)], [("t", [])] * MANY),
        ([marker(("t", [0] * MANY))], [("t", [(0, OK)] * MANY)]),
        ([marker(("t", [99] * MANY))], [("t", [(99, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)] * MANY)]),
        ([marker(("t", [0]))] * MANY, [("t", [(0, OK)])]),
    ],
)
async def test_a_large_request_is_read_and_answered_in_turns(
    markers: list[WritableTxnMarker], expected: list[Any]
) -> None:
    codes, turns = await turns_of(query(Broker(), *markers))
    assert codes == [expected] * len(markers)
    assert turns >= 2 * MANY // 100


async def test_a_group_coordinator_has_no_more_markers_in_hand_than_it_writes_in_a_moment() -> None:
    broker = Broker()
    codes, turns = await turns_of(query(broker, *[marker((GROUPS, [1]))] * MANY))
    assert codes == [[(GROUPS, [(1, OK)])]] * MANY
    assert len(broker.ended) == MANY
    assert broker.most_in_hand == _AT_ONCE
    assert turns > MANY // _AT_ONCE


def test_all_markers_of_a_request_have_the_time_of_one() -> None:
    broker = Broker(is_stuck=True)

    async def requested() -> tuple[list[Any], float]:
        return await query(broker, *[marker((GROUPS, [1]))] * MANY), asyncio.get_running_loop().time()

    assert run_stepped(requested()) == ([[(GROUPS, [(1, ErrorCode.REQUEST_TIMED_OUT)])]] * MANY, 30)
    assert len(broker.ended) == _AT_ONCE
