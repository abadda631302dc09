"""ConsumerGroupDescribe: describes consumer groups of KIP-848, their members and assignments.

Key
    69

Versions
    0-1

Behaviour
    - A group that occurs twice is described once.
    - Every member has its current assignment, including partitions that it still has to revoke, and its target.
    - Errors of a group: GROUP_ID_NOT_FOUND, also for a classic group, INVALID_GROUP_ID, NOT_COORDINATOR,
      COORDINATOR_LOAD_IN_PROGRESS; UNSUPPORTED_VERSION while the feature `group.version` is below 1.

Version notes
    - Version 1 returns the protocol type of each member.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.events import DescribeConsumerGroups
from pybroker.handlers.described_groups import Described
from pybroker.handlers.registry import handles
from pybroker.metadata.features import GROUP_VERSION
from pybroker.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_items, of_response
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError


def _topics(group: DescribedGroup) -> Iterable[str]:
    return (
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    )


_HIDDEN = "The group has described topic(s) that the client is not authorized to describe."
_GROUPS = Described(DescribedGroup, GROUP_VERSION, _topics, _HIDDEN)


def _failed(request: ConsumerGroupDescribeRequest, _version: int, error: WireError) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(groups=_GROUPS.failed(request.group_ids, error))


@handles(
    ConsumerGroupDescribeRequest,
    requires=[
        of_items(Operation.DESCRIBE, ResourceType.GROUP, select(ConsumerGroupDescribeRequest.group_ids)),
        of_response(Operation.DESCRIBE, ResourceType.TOPIC),
    ],
    failed=_failed,
)
async def consumer_group_describe(
    request: ConsumerGroupDescribeRequest, context: BrokerContext
) -> ConsumerGroupDescribeResponse:
    """Describe groups, in the order of the request, each once."""
    return ConsumerGroupDescribeResponse(groups=await _GROUPS.describe(request, DescribeConsumerGroups, context))
