"""AlterPartition: many partitions are read and answered in turns of the loop."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from pybroker.handlers.alter_partition import alter_partition
from pybroker.handlers.errors import ApiError
from pybroker.metadata.in_sync import InSyncChange, InSyncResult
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.alter_partition import AlterPartitionRequest, PartitionData, TopicData
from tests.support.loop_turns import short_slices, turns_of

A, B = b"a" * 16, b"b" * 16
MANY = 4_000


class Controller:
    """Takes the changes of partitions with even numbers, by the epoch 5 of a broker."""

    async def alter_partitions(
        self, _broker_id: int, broker_epoch: int, changes: Sequence[InSyncChange]
    ) -> list[InSyncResult]:
        if broker_epoch != 5:
            return [InSyncResult(one.topic_id, one.partition, ErrorCode.STALE_BROKER_EPOCH) for one in changes]
        return [
            InSyncResult(
                one.topic_id,
                one.partition,
                ErrorCode.FENCED_LEADER_EPOCH if one.partition % 2 else ErrorCode.NONE,
                isr=tuple(broker_id for broker_id, _ in one.isr),
            )
            for one in changes
        ]


async def query(*topics: tuple[bytes, Sequence[int]], broker_epoch: int = 5) -> tuple[list[Any], int]:
    """The answers by topic, and the turns of the loop that they left to others."""
    context: Any = SimpleNamespace(
        version=2, services=SimpleNamespace(slices=short_slices(), controller=SimpleNamespace(own=Controller))
    )
    request = AlterPartitionRequest(broker_id=1, broker_epoch=broker_epoch)
    for topic_id, indexes in topics:
        partitions = [PartitionData(partition_index=index, new_isr=[1, 2]) for index in indexes]
        request.topics.append(TopicData(topic_id=topic_id, partitions=partitions))
    response, turns = await turns_of(alter_partition(request, context))
    return [
        (topic.topic_id, [(one.partition_index, one.error_code, one.isr) for one in topic.partitions])
        for topic in response.topics
    ], turns


async def test_each_partition_of_each_topic_is_answered() -> None:
    done, refused = ErrorCode.NONE, ErrorCode.FENCED_LEADER_EPOCH
    responses, _ = await query((A, [0, 1]), (B, [2]))
    assert responses == [(A, [(0, done, [1, 2]), (1, refused, [])]), (B, [(2, done, [1, 2])])]


async def test_many_partitions_are_read_and_answered_in_turns() -> None:
    responses, turns = await query((A, range(MANY)))
    assert [index for index, *_ in responses[0][1]] == list(range(MANY))
    assert turns >= 2 * MANY // 101


async def test_an_epoch_that_has_passed_is_the_answer_to_all() -> None:
    with pytest.raises(ApiError) as error:
        await query((A, [0]), broker_epoch=4)
    assert error.value.code is ErrorCode.STALE_BROKER_EPOCH
