"""StreamsGroupDescribe: describes streams groups of KIP-1071, their topology, members and tasks.

Key
    89

Versions
    0-1

Behaviour
    - A group that occurs twice is described once.
    - The topology has decided partition counts if all its topics are there, else as the member sent it.
    - Every member has its current tasks and its target.
    - Errors of a group: GROUP_ID_NOT_FOUND, also for a group of another type, INVALID_GROUP_ID, NOT_COORDINATOR,
      COORDINATOR_LOAD_IN_PROGRESS, TOPIC_AUTHORIZATION_FAILED; UNSUPPORTED_VERSION while the feature `streams.version`
      is below 1.

Version notes
    - Version 1 returns the assignor.

Not done
    - The description of the topology is never stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.events import DescribeStreamsGroups
from pybroker.handlers.described_groups import Described
from pybroker.handlers.registry import handles
from pybroker.metadata.features import STREAMS_VERSION
from pybroker.protocol.messages.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items, of_response
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError


def _topics(group: DescribedGroup) -> Iterable[str]:
    parts = () if group.topology is None else group.topology.subtopologies or ()
    return (
        name
        for part in parts
        for name in (
            *part.source_topics,
            *part.repartition_sink_topics,
            *(topic.name for topic in part.repartition_source_topics),
            *(topic.name for topic in part.state_changelog_topics),
        )
    )


_HIDDEN = "The described group uses topics that the client is not authorized to describe."
_GROUPS = Described(DescribedGroup, STREAMS_VERSION, _topics, _HIDDEN)


def _failed(request: StreamsGroupDescribeRequest, _version: int, error: WireError) -> StreamsGroupDescribeResponse:
    return StreamsGroupDescribeResponse(groups=_GROUPS.failed(request.group_ids, error))


@handles(
    StreamsGroupDescribeRequest,
    requires=[
        of_items(Operation.DESCRIBE, ResourceType.GROUP, select(StreamsGroupDescribeRequest.group_ids)),
        of_response(Operation.DESCRIBE, ResourceType.TOPIC),
    ],
    failed=_failed,
)
async def streams_group_describe(
    request: StreamsGroupDescribeRequest, context: BrokerContext
) -> StreamsGroupDescribeResponse:
    """Describe groups, in the order of the request, each once."""

    def event(group_ids: Sequence[str]) -> DescribeStreamsGroups:
        return DescribeStreamsGroups(group_ids, request.include_topology_description)

    return StreamsGroupDescribeResponse(groups=await _GROUPS.describe(request, event, context))
