from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pybroker.controller.errors import NotControllerError
from pybroker.handlers.list_partition_reassignments import list_partition_reassignments
from pybroker.handlers.registry import registered_apis
from pybroker.protocol.codec import decode, encode
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)

WORDS = "the controller is stopping"


class Stopping:
    """A controller that is not one any more."""

    async def list_reassignments(self, *_: Any) -> None:
        raise NotControllerError(WORDS)


@pytest.mark.parametrize("named", [None, [5]])
async def test_without_a_controller_the_client_is_answered_with_not_controller(named: list[int] | None) -> None:
    topics = None if named is None else [ListPartitionReassignmentsTopics(name="t", partition_indexes=named)]
    request = ListPartitionReassignmentsRequest(topics=topics)
    context: Any = SimpleNamespace(services=SimpleNamespace(controller=SimpleNamespace(own=Stopping)), version=0)
    with pytest.raises(NotControllerError) as failure:
        await list_partition_reassignments(request, context)
    response = registered_apis()[46].failed(request, context, failure.value)
    assert decode(ListPartitionReassignmentsResponse, encode(response, 0), 0)[0] == response
    assert (response.error_code, response.error_message) == (ErrorCode.NOT_CONTROLLER, WORDS)
    listed = [
        (topic.name, [(one.partition_index, one.replicas) for one in topic.partitions]) for topic in response.topics
    ]
    assert listed == ([] if named is None else [("t", [(5, [])])])
