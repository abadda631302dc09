"""The common part of ConsumerGroupDescribe and StreamsGroupDescribe.

Owns the requests to coordinators, the errors of groups, and authorization. Must not know what a description contains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from pybroker.coordinator.group.service import by_partition
from pybroker.coordinator.runtime.errors import CoordinatorError
from pybroker.handlers.authorizing import may
from pybroker.handlers.errors import ApiError, WireError, wire_error
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages import consumer_group_describe as consumer
from pybroker.protocol.messages import streams_group_describe as streams
from pybroker.security.authorizer import authorized_operations
from pybroker.security.operations import Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pybroker.handlers.context import BrokerContext

Group = TypeVar("Group", consumer.DescribedGroup, streams.DescribedGroup)


class Described(msgspec.Struct, Generic[Group], frozen=True):
    """A type of groups."""

    group: type[Group]
    feature: str
    """The feature that must have at least level 1."""
    topics: Callable[[Group], Iterable[str]]
    """Returns the topics in a description."""
    hidden: str
    """The message of a group with a topic that the client may not describe."""

    def failed(self, group_ids: Iterable[str], error: WireError) -> list[Group]:
        """Return the descriptions of groups that fail with one error."""
        return [
            self.group(group_id=group_id, error_code=error.code, error_message=error.message) for group_id in group_ids
        ]

    async def describe(
        self,
        request: consumer.ConsumerGroupDescribeRequest | streams.StreamsGroupDescribeRequest,
        event: Callable[[Sequence[str]], Any],
        context: BrokerContext,
    ) -> list[Group]:
        """Describe groups in the order of the request, each once. `event` builds the coordinator's event."""
        if context.image.features.levels.get(self.feature, 0) < 1:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        coordinator = context.services.groups
        requested = dict.fromkeys(request.group_ids)
        nameless = self.failed((it for it in requested if not it), WireError(ErrorCode.INVALID_GROUP_ID, None))
        described = {group.group_id: group for group in nameless}
        named = (group_id for group_id in requested if group_id)
        for partition, group_ids in await context.services.slices.run(by_partition(named, coordinator)):
            try:
                groups = await coordinator.submit_to(partition, event(group_ids))
            except CoordinatorError as error:
                groups = self.failed(group_ids, wire_error(error))
            described.update((group.group_id, group) for group in groups)
        if context.authorizer is not None:
            described = {group_id: self._without_hidden(group, context) for group_id, group in described.items()}
        if request.include_authorized_operations:
            for group in described.values():
                if group.error_code == ErrorCode.NONE:
                    group.authorized_operations = authorized_operations(context, ResourceType.GROUP, group.group_id)
        return [described[group_id] for group_id in requested]

    def _without_hidden(self, group: Group, context: BrokerContext) -> Group:
        """Return the group, or TOPIC_AUTHORIZATION_FAILED if the client may not describe one of its topics."""
        topics = set(self.topics(group))
        if all(may(context, Operation.DESCRIBE, ResourceType.TOPIC, name, is_requested=False) for name in topics):
            return group
        [hidden] = self.failed([group.group_id], WireError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, self.hidden))
        return hidden
