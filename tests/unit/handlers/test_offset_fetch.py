"""OffsetFetch: what is asked for several times is answered as often as the answers differ."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pybroker.coordinator.group.errors import StaleMemberEpochError, UnknownMemberIdError
from pybroker.handlers import offset_fetch as handler
from pybroker.handlers.offset_fetch import offset_fetch
from pybroker.machine.reply import Reply
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

EPOCH = 2
WHOLE = (("t", (0, 1)),)
UNKNOWN, STALE = ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.STALE_MEMBER_EPOCH


class Groups:
    """A coordinator of groups that have two offsets and the member A; it counts the offsets that it is asked for."""

    def __init__(self) -> None:
        self.looked_up = 0

    def submit(self, _group_id: str, event: Any) -> Reply:
        requested, reply = event.group, Reply()
        if requested.member_id not in (None, "A"):
            reply(None, UnknownMemberIdError())
            return reply
        if requested.member_id == "A" and requested.member_epoch != EPOCH:
            reply(None, StaleMemberEpochError())
            return reply
        topics = (
            [OffsetFetchRequestTopics(name="t", partition_indexes=[0, 1])]
            if requested.topics is None
            else requested.topics
        )
        responses = [
            OffsetFetchResponseTopics(
                name=topic.name,
                partitions=[OffsetFetchResponsePartitions(partition_index=index) for index in topic.partition_indexes],
            )
            for topic in topics
        ]
        self.looked_up += sum(len(topic.partition_indexes) for topic in topics)
        reply(OffsetFetchResponseGroup(group_id=requested.group_id, topics=responses), None)
        return reply


def whole(group_id: str = "g", member: str | None = None, epoch: int = -1) -> OffsetFetchRequestGroup:
    return OffsetFetchRequestGroup(group_id=group_id, member_id=member, member_epoch=epoch, topics=None)


def some(*indexes: int, member: str | None = None, epoch: int = -1) -> OffsetFetchRequestGroup:
    topics = [OffsetFetchRequestTopics(name="t", partition_indexes=list(indexes))]
    return OffsetFetchRequestGroup(group_id="g", member_id=member, member_epoch=epoch, topics=topics)


@pytest.fixture(params=[False, True], ids=["open", "authorized"])
def is_checked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether an authorizer is asked; it allows everything."""
    monkeypatch.setattr(handler, "may", lambda *_, **__: True)
    return bool(request.param)


async def fetch(groups: Groups, *requested: OffsetFetchRequestGroup, is_checked: bool) -> list[tuple[str, Any]]:
    """Fetch offsets; of each answer the group, and its error or its partitions."""
    context: Any = SimpleNamespace(
        version=9,
        authorizer=object() if is_checked else None,
        image=SimpleNamespace(topics=None),
        services=SimpleNamespace(groups=groups),
    )
    response: Any = offset_fetch(OffsetFetchRequest(groups=list(requested)), context)
    return [
        (
            group.group_id,
            group.error_code
            or tuple((topic.name, tuple(it.partition_index for it in topic.partitions)) for topic in group.topics),
        )
        for group in (await response).groups
    ]


async def test_a_group_is_answered_by_topics_and_whole(is_checked: bool) -> None:
    requested = some(0, member="A", epoch=EPOCH), whole(member="B", epoch=7), some(1), whole()
    responses = await fetch(Groups(), *requested, is_checked=is_checked)
    assert responses == [("g", (("t", (0,)),)), ("g", UNKNOWN), ("g", (("t", (1,)),)), ("g", WHOLE)]


async def test_every_member_that_may_not_is_told_so(is_checked: bool) -> None:
    requested = whole(member="A", epoch=EPOCH), whole(member="A", epoch=1), whole(member="B", epoch=1), whole("h")
    responses = await fetch(Groups(), *requested, is_checked=is_checked)
    assert responses == [("g", WHOLE), ("g", STALE), ("g", UNKNOWN), ("h", WHOLE)]


async def test_the_same_question_is_answered_once(is_checked: bool) -> None:
    requested = whole(), whole("h"), whole(), whole(member="B"), whole("h"), whole(member="B")
    assert await fetch(Groups(), *requested, is_checked=is_checked) == [("g", WHOLE), ("h", WHOLE), ("g", UNKNOWN)]


async def test_all_offsets_of_a_group_are_looked_up_and_answered_once_whoever_asks(is_checked: bool) -> None:
    groups = Groups()
    requested = [whole(epoch=-1 - number) for number in range(100)] + [whole(member="A", epoch=EPOCH)]
    assert await fetch(groups, *requested, is_checked=is_checked) == [("g", WHOLE)]
    assert groups.looked_up == 2
