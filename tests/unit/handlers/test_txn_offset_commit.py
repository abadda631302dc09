"""TxnOffsetCommit: each partition is answered, whatever becomes of the others, and many in turns of the loop."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pybroker.coordinator.group.errors import IllegalGenerationError
from pybroker.coordinator.runtime.errors import NotCoordinatorError
from pybroker.handlers.txn_offset_commit import txn_offset_commit
from pybroker.machine.parts import MANY
from pybroker.machine.reply import Reply
from pybroker.machine.runner import UncommittedError
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from tests.support.loop_turns import short_slices, turns_of

OK, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
OPEN = 0
LARGE = 10 * MANY


class Groups:
    """A coordinator with an open transaction, that commits everything, or fails; it keeps what it was asked."""

    def __init__(self, *failures: Exception | None, refusal: Exception | None = None) -> None:
        self.failures = list(failures)
        self.refusal = refusal
        self.requested: list[list[tuple[str, list[int]]]] = []

    def begin_verification(self, *_who: Any, bumps_epoch: bool) -> int:
        assert not bumps_epoch
        if self.refusal is not None:
            raise self.refusal
        return OPEN

    def submit(self, _group_id: str, event: Any) -> Reply:
        named = [(it.name, [one.partition_index for one in it.partitions]) for it in event.request.topics]
        self.requested.append(named)
        failure = self.failures.pop(0) if self.failures else None
        if isinstance(failure, NotCoordinatorError):
            raise failure
        responses = [
            TxnOffsetCommitResponseTopic(
                name=name, partitions=[TxnOffsetCommitResponsePartition(partition_index=index) for index in indexes]
            )
            for name, indexes in named
        ]
        reply = Reply()
        reply(None if failure else TxnOffsetCommitResponse(topics=responses), failure)
        return reply


async def commit(groups: Groups, *named: tuple[str, list[int]]) -> tuple[list[Any], int]:
    """Commit partitions; the answers by topic, and the turns of the loop that they left to others. `t` has 0 to 9."""
    topic = SimpleNamespace(topic_id=b"t" * 16, partitions=dict.fromkeys(range(10)))
    request = TxnOffsetCommitRequest(group_id="g", transactional_id="x")
    for name, indexes in named:
        partitions = [TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=1) for index in indexes]
        request.topics.append(TxnOffsetCommitRequestTopic(name=name, partitions=partitions))
    context: Any = SimpleNamespace(
        version=3,
        image=SimpleNamespace(topics=SimpleNamespace(by_name={"t": topic})),
        services=SimpleNamespace(
            groups=groups,
            slices=short_slices(),
            config=SimpleNamespace(transaction_partition_verification_enable=True),
        ),
    )
    response, turns = await turns_of(txn_offset_commit(request, context))
    return [
        (it.name, [(one.partition_index, one.error_code) for one in it.partitions]) for it in response.topics
    ], turns


async def test_what_does_not_exist_is_answered_beside_what_is_committed() -> None:
    groups = Groups()
    responses, _ = await commit(groups, ("t", [0, -1, 1]), ("nope", [0]), ("t", [10, 2]), ("t", []))
    assert responses == [("t", [(-1, UNKNOWN), (10, UNKNOWN), (0, OK), (1, OK), (2, OK)]), ("nope", [(0, UNKNOWN)])]
    assert groups.requested == [[("t", [0, 1]), ("t", [2])]]


async def test_what_does_not_exist_is_answered_beside_a_refusal_of_the_others() -> None:
    expected = [("t", [(-1, UNKNOWN), (0, ErrorCode.ILLEGAL_GENERATION)])]
    assert (await commit(Groups(IllegalGenerationError()), ("t", [0, -1])))[0] == expected
    assert (await commit(Groups(refusal=IllegalGenerationError()), ("t", [0, -1])))[0] == expected


async def test_many_partitions_that_do_not_exist_are_answered_in_turns() -> None:
    responses, turns = await commit(Groups(), ("t", [99] * LARGE), *[("nope", [])] * LARGE)
    assert responses == [("t", [(99, UNKNOWN)] * LARGE)]
    assert turns >= 3 * LARGE // 101


async def test_many_partitions_that_are_refused_together_are_answered_in_turns() -> None:
    responses, turns = await commit(Groups(refusal=NotCoordinatorError()), ("t", [0] * LARGE))
    assert responses == [("t", [(0, ErrorCode.NOT_COORDINATOR)] * LARGE)]
    assert turns >= 2 * LARGE // 101


async def test_parts_that_are_refused_at_once_leave_others_their_turns() -> None:
    groups = Groups(*[NotCoordinatorError()] * LARGE)
    responses, turns = await commit(groups, ("t", [0] * LARGE))
    assert responses == [("t", [(0, ErrorCode.NOT_COORDINATOR)] * LARGE)]
    assert turns >= len(groups.requested) + LARGE // 101


async def test_no_part_waits_after_one_that_was_not_committed_in_time() -> None:
    groups = Groups(None, UncommittedError("late"))
    ((_, codes),), _ = await commit(groups, ("t", [0] * LARGE))
    assert len(groups.requested) == 2
    committed = len(groups.requested[0][0][1])
    late = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert [code for _, code in codes] == [OK] * committed + [late] * (LARGE - committed)
