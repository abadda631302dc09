"""A controller that cannot answer: both APIs tell NOT_CONTROLLER, at the top and for each partition that was named."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pybroker.controller.errors import NotControllerError
from pybroker.handlers.registry import registered_apis
from pybroker.protocol.codec import decode, encode
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from pybroker.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)

WORDS = "the controller is stopping"


class Stopping:
    """A controller that is not one any more."""

    async def alter_reassignments(self, *_: Any, **__: Any) -> None:
        raise NotControllerError(WORDS)

    list_reassignments = alter_reassignments


async def answer(request: Any, version: int) -> Any:
    """What the API answers, as the pipeline has it answer."""
    context: Any = SimpleNamespace(services=SimpleNamespace(controller=Stopping()), version=version)
    (api,) = (one for one in registered_apis().values() if isinstance(request, one.request_type))
    try:
        return await api.handle(request, context)
    except NotControllerError as error:
        return api.failed(request, context, error)


@pytest.mark.parametrize("version", [0, 1])
async def test_a_reassignment_is_told_to_look_for_the_controller(version: int) -> None:
    partitions = [ReassignablePartition(partition_index=index, replicas=[1]) for index in (3, 0)]
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="t", partitions=partitions)])
    response = await answer(request, version)
    assert decode(AlterPartitionReassignmentsResponse, encode(response, version), version)[0] == response
    assert (response.error_code, response.error_message) == (ErrorCode.NOT_CONTROLLER, WORDS)
    (topic,) = response.responses
    assert topic.name == "t"
    assert [(one.partition_index, one.error_code, one.error_message) for one in topic.partitions] == [
        (index, ErrorCode.NOT_CONTROLLER, WORDS) for index in (3, 0)
    ]


@pytest.mark.parametrize("named", [None, [5]])
async def test_a_listing_is_told_to_look_for_the_controller(named: list[int] | None) -> None:
    topics = None if named is None else [ListPartitionReassignmentsTopics(name="t", partition_indexes=named)]
    response = await answer(ListPartitionReassignmentsRequest(topics=topics), 0)
    assert decode(ListPartitionReassignmentsResponse, encode(response, 0), 0)[0] == response
    assert (response.error_code, response.error_message) == (ErrorCode.NOT_CONTROLLER, WORDS)
    told = [
        (topic.name, [(one.partition_index, one.replicas) for one in topic.partitions]) for topic in response.topics
    ]
    assert told == ([] if named is None else [("t", [(5, [])])])
