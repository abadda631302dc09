from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pybroker.controller.errors import NotControllerError
from pybroker.handlers.alter_partition_reassignments import alter_partition_reassignments
from pybroker.handlers.registry import registered_apis
from pybroker.protocol.codec import decode, encode
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)

WORDS = "the controller is stopping"


class Stopping:
    """A controller that is not one any more."""

    async def alter_reassignments(self, *_: Any, **__: Any) -> None:
        raise NotControllerError(WORDS)


@pytest.mark.parametrize("version", [0, 1])
async def test_without_a_controller_every_partition_is_answered_with_not_controller(version: int) -> None:
    partitions = [ReassignablePartition(partition_index=index, replicas=[1]) for index in (3, 0)]
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="t", partitions=partitions)])
    context: Any = SimpleNamespace(services=SimpleNamespace(controller=SimpleNamespace(own=Stopping)), version=version)
    with pytest.raises(NotControllerError) as failure:
        await alter_partition_reassignments(request, context)
    response = registered_apis()[45].failed(request, context, failure.value)
    assert decode(AlterPartitionReassignmentsResponse, encode(response, version), version)[0] == response
    assert (response.error_code, response.error_message) == (ErrorCode.NOT_CONTROLLER, WORDS)
    (topic,) = response.responses
    assert topic.name == "t"
    assert [(one.partition_index, one.error_code, one.error_message) for one in topic.partitions] == [
        (index, ErrorCode.NOT_CONTROLLER, WORDS) for index in (3, 0)
    ]
