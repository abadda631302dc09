"""OffsetCommit: each partition is answered once, whatever becomes of the others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pybroker.coordinator.group.errors import IllegalGenerationError
from pybroker.coordinator.runtime.errors import NotCoordinatorError
from pybroker.handlers.offset_commit import offset_commit
from pybroker.machine.parts import MANY
from pybroker.machine.reply import Reply
from pybroker.machine.runner import UncommittedError
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

OK, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
T_ID, NO_ID = b"t" * 16, b"n" * 16
PARTITIONS = range(4_000)


class Groups:
    """A coordinator that commits everything, or fails; it keeps what it was asked."""

    def __init__(self, *failures: Exception | None, raises: Exception | None = None) -> None:
        self.failures = list(failures)
        self.raises = raises
        self.requested: list[list[tuple[str, list[int]]]] = []

    def submit(self, _group_id: str, event: Any) -> Reply:
        if self.raises is not None:
            raise self.raises
        topics = event.request.topics
        self.requested.append([(it.name, [partition.partition_index for partition in it.partitions]) for it in topics])
        reply = Reply()
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            reply(None, failure)
            return reply
        responses = [
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=it.partition_index) for it in topic.partitions
                ],
            )
            for topic in topics
        ]
        reply(OffsetCommitResponse(topics=responses), None)
        return reply


async def commit(groups: Groups, *topics: tuple[str | bytes, list[int]], version: int = 8) -> Any:
    """Commit partitions of topics by name or id; the answers: name or id, and the partitions' codes."""
    topic = SimpleNamespace(name="t", topic_id=T_ID, partitions=dict.fromkeys(PARTITIONS))
    image = SimpleNamespace(topics=SimpleNamespace(by_name={"t": topic}, by_id={T_ID: topic}))
    request = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=5, member_id="m")
    for named, indexes in topics:
        partitions = [OffsetCommitRequestPartition(partition_index=index, committed_offset=1) for index in indexes]
        by = {"name": named} if isinstance(named, str) else {"topic_id": named}
        request.topics.append(OffsetCommitRequestTopic(**by, partitions=partitions))
    context = SimpleNamespace(version=version, image=image, services=SimpleNamespace(groups=groups))
    reply: Any = offset_commit(request, context)  # type: ignore[arg-type]
    response = reply if isinstance(reply, OffsetCommitResponse) else await reply
    return [
        (
            topic.topic_id if version >= 10 else topic.name,
            [(it.partition_index, it.error_code) for it in topic.partitions],
        )
        for topic in response.topics
    ]


async def test_what_does_not_exist_is_answered_beside_what_is_committed() -> None:
    groups = Groups()
    responses = await commit(groups, ("t", [0, -1, 1]), ("nope", [0]))
    assert responses == [("t", [(-1, UNKNOWN), (0, OK), (1, OK)]), ("nope", [(0, UNKNOWN)])]
    assert groups.requested == [[("t", [0, 1])]]


@pytest.mark.parametrize("groups", [Groups(IllegalGenerationError()), Groups(raises=IllegalGenerationError())])
async def test_what_does_not_exist_is_answered_beside_a_refusal_of_the_others(groups: Groups) -> None:
    responses = await commit(groups, ("t", [0, -1]), ("nope", [0]))
    assert responses == [("t", [(-1, UNKNOWN), (0, ErrorCode.ILLEGAL_GENERATION)]), ("nope", [(0, UNKNOWN)])]


async def test_a_failure_that_is_none_of_a_coordinators_is_the_answer_to_what_exists_alone() -> None:
    responses = await commit(Groups(UncommittedError("late")), ("t", [0, -1]))
    assert responses == [("t", [(-1, UNKNOWN), (0, ErrorCode.COORDINATOR_NOT_AVAILABLE)])]


async def test_a_topic_that_is_named_twice_keeps_all_of_its_answers() -> None:
    groups = Groups()
    responses = await commit(groups, ("nope", [0]), ("t", [0, -1]), ("t", [1]), ("nope", [1]), ("t", [-2]))
    assert responses == [
        ("nope", [(0, UNKNOWN), (1, UNKNOWN)]),
        ("t", [(-1, UNKNOWN), (-2, UNKNOWN), (0, OK), (1, OK)]),
    ]
    assert await commit(groups, ("nope", [0]), ("nope", [1])) == [("nope", [(0, UNKNOWN), (1, UNKNOWN)])]


async def test_topics_by_id_that_are_named_twice_keep_all_of_their_answers() -> None:
    responses = await commit(Groups(), (NO_ID, [0]), (T_ID, [-1]), (NO_ID, [1]), (T_ID, [-2, 0]), version=10)
    unknown = ErrorCode.UNKNOWN_TOPIC_ID
    assert responses == [
        (NO_ID, [(0, unknown), (1, unknown)]),
        (T_ID, [(-1, UNKNOWN), (-2, UNKNOWN), (0, OK)]),
    ]


@pytest.mark.parametrize("version", [2, 8])
async def test_a_topic_without_partitions_is_answered_only_where_it_is_unknown(version: int) -> None:
    groups = Groups()
    assert await commit(groups, ("t", []), ("nope", []), version=version) == [("nope", [])]
    assert groups.requested == []
    assert await commit(groups, ("t", []), ("t", [0]), version=version) == [("t", [(0, OK)])]


async def test_a_topic_by_id_without_partitions_is_answered_only_where_it_is_unknown() -> None:
    assert await commit(Groups(), (T_ID, []), (NO_ID, []), version=10) == [(NO_ID, [])]


async def test_each_part_of_a_large_request_has_an_answer_of_its_own() -> None:
    groups = Groups(None, NotCoordinatorError())
    many = list(range(MANY + 1))
    ((_, codes),) = await commit(groups, ("t", [-1, *many]))
    of_parts = [len(requested[0][1]) for requested in groups.requested]
    committed, refused = of_parts[0], of_parts[1]
    assert [index for index, _ in codes] == [-1, *many]
    assert [code for _, code in codes] == [
        UNKNOWN,
        *[OK] * committed,
        *[ErrorCode.NOT_COORDINATOR] * refused,
        *[OK] * (len(many) - committed - refused),
    ]


async def test_no_part_waits_after_one_that_was_not_committed_in_time() -> None:
    groups = Groups(None, UncommittedError("late"))
    ((_, codes),) = await commit(groups, ("t", list(range(MANY + 1))))
    assert len(groups.requested) == 2
    committed = len(groups.requested[0][0][1])
    late = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert [code for _, code in codes] == [OK] * committed + [late] * (MANY + 1 - committed)
