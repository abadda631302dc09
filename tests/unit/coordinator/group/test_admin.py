"""What the administration of groups answers."""

from __future__ import annotations

from typing import Any

import pytest

from pybroker.coordinator.group.errors import GroupError
from pybroker.coordinator.group.events import Client, ConsumerHeartbeat, DescribeConsumerGroups, DescribeGroups
from pybroker.coordinator.group.ids import GroupId
from pybroker.coordinator.group.machine import GroupMachine
from pybroker.coordinator.group.modern.group import ConsumerGroup
from pybroker.protocol.codec import encode
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeResponse
from pybroker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from pybroker.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsResponse
from tests.support.groups import group_settings

MAX_STRING_BYTES = 32_767


def describe(group_id: str, *, is_consumers: bool = False) -> DescribedGroup:
    machine = GroupMachine(group_settings())
    if is_consumers:
        machine.state.put_group(GroupId(group_id), ConsumerGroup(GroupId(group_id)))
    reply: Any = machine.handle(DescribeGroups([group_id], 6), 0).reply
    described: DescribedGroup = reply[0]
    return described


@pytest.mark.parametrize("is_consumers", [False, True])
@pytest.mark.parametrize("letter", ["x", "ä", "\u20ac", "\U0001f600"])
def test_the_message_about_the_longest_id_fits_into_an_answer(letter: str, is_consumers: bool) -> None:
    group_id = letter * (MAX_STRING_BYTES // len(letter.encode()))
    described = describe(group_id, is_consumers=is_consumers)
    message = described.error_message or ""
    assert (described.group_id, described.error_code) == (group_id, ErrorCode.GROUP_ID_NOT_FOUND)
    assert MAX_STRING_BYTES - 20 < len(message.encode()) <= MAX_STRING_BYTES
    assert message.endswith(f"{letter} is not a classic group." if is_consumers else f"{letter} not found.")
    encode(DescribeGroupsResponse(groups=[described]), 6)


def test_what_is_said_of_the_longest_ids_fits_into_an_answer() -> None:
    longest = "\U0001f600" * (MAX_STRING_BYTES // 4)
    machine = GroupMachine(group_settings())
    reply: Any = machine.handle(DescribeConsumerGroups([longest]), 0).reply
    encode(ConsumerGroupDescribeResponse(groups=reply), 1)
    assert reply[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id=longest, member_epoch=7)
    with pytest.raises(GroupError) as refused:
        machine.handle(ConsumerHeartbeat(request, 1, Client("c", "/h"), "fresh"), 0)
    encode(ConsumerGroupHeartbeatResponse(error_code=refused.value.code, error_message=refused.value.message), 1)
    with pytest.raises(GroupError) as refused:
        raise GroupError(longest * 3)
    encode(ConsumerGroupHeartbeatResponse(error_code=refused.value.code, error_message=refused.value.message), 1)


def test_an_id_for_which_there_is_room_is_whole() -> None:
    assert describe("g").error_message == "Group g not found."
    assert describe("g", is_consumers=True).error_message == "Group g is not a classic group."
    assert describe("x" * 30_000).error_message == f"Group {'x' * 30_000} not found."
