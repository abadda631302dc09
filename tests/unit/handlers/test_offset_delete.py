"""OffsetDelete: each partition is answered once, also where a topic is named twice."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pybroker.handlers.offset_delete import offset_delete
from pybroker.machine.reply import Reply
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

OK, UNKNOWN = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class Groups:
    """A coordinator that forgets everything, or refuses."""

    def __init__(self, code: ErrorCode = OK) -> None:
        self.code = code

    def submit(self, _group_id: str, event: Any) -> Reply:
        topics = [
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponsePartition(partition_index=it.partition_index) for it in topic.partitions
                ],
            )
            for topic in event.request.topics
        ]
        reply = Reply()
        reply(OffsetDeleteResponse(error_code=self.code, topics=[] if self.code else topics), None)
        return reply


async def delete(groups: Groups, *topics: tuple[str, list[int]]) -> Any:
    """Delete offsets; the answers: name, and the partitions' codes."""
    image = SimpleNamespace(topics=SimpleNamespace(by_name={"t": SimpleNamespace(partitions={0: None, 1: None})}))
    request = OffsetDeleteRequest(
        group_id="g",
        topics=[
            OffsetDeleteRequestTopic(
                name=name, partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes]
            )
            for name, indexes in topics
        ],
    )
    context = SimpleNamespace(version=0, image=image, services=SimpleNamespace(groups=groups))
    response = await offset_delete(request, context)  # type: ignore[arg-type]
    return response.error_code, [
        (topic.name, [(it.partition_index, it.error_code) for it in topic.partitions]) for topic in response.topics
    ]


@pytest.mark.parametrize(
    ("topics", "responses"),
    [
        ([("t", [8]), ("t", [9])], [("t", [(8, UNKNOWN), (9, UNKNOWN)])]),
        ([("nope", [0]), ("nope", [1])], [("nope", [(0, UNKNOWN), (1, UNKNOWN)])]),
        ([("t", [0, 9]), ("t", [1]), ("t", [8])], [("t", [(9, UNKNOWN), (8, UNKNOWN), (0, OK), (1, OK)])]),
        ([("t", [0]), ("t", [1])], [("t", [(0, OK)]), ("t", [(1, OK)])]),
        ([("nope", []), ("t", []), ("t", [0])], [("nope", []), ("t", [(0, OK)])]),
    ],
)
async def test_every_partition_is_answered(topics: Any, responses: Any) -> None:
    assert await delete(Groups(), *topics) == (OK, responses)


async def test_a_refusal_of_the_whole_names_no_topics() -> None:
    code = ErrorCode.GROUP_ID_NOT_FOUND
    assert await delete(Groups(code), ("t", [0, 9]), ("nope", [0])) == (code, [])
