"""ConsumerGroupHeartbeat: a member joins, keeps its session, reconciles its assignment and leaves (KIP-848).

Key
    68

Versions
    0-1

Behaviour
    - Epoch 0 joins, -1 leaves, -2 leaves temporarily as a static member. Omitted fields are unchanged. The response has
      the assignment if it has changed, or if the request has all fields.
    - An empty classic group with the same id is replaced. One with members is upgraded if
      `group.consumer.migration.policy` allows it, and its classic members stay in the group.
    - Errors: INVALID_REQUEST, GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, UNRELEASED_INSTANCE_ID,
      FENCED_INSTANCE_ID, UNSUPPORTED_ASSIGNOR, INVALID_REGULAR_EXPRESSION, GROUP_MAX_SIZE_REACHED, NOT_COORDINATOR,
      COORDINATOR_LOAD_IN_PROGRESS; UNSUPPORTED_VERSION while the feature `group.version` is below 1.

Version notes
    - Since version 1, a member generates its own id (KIP-1082), and may subscribe to a pattern in RE2's syntax.

Not done
    - Settings of a single group (`consumer.session.timeout.ms` ... of the resource GROUP), custom assignors.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from pybroker.coordinator.group.events import Client, ConsumerHeartbeat
from pybroker.handlers.errors import ApiError
from pybroker.handlers.registry import handles
from pybroker.metadata.features import GROUP_VERSION
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request, of_response
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.reply import Reply


def _failed(_request: ConsumerGroupHeartbeatRequest, _version: int, error: WireError) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)


@handles(
    ConsumerGroupHeartbeatRequest,
    requires=[
        of_request(Operation.READ, ResourceType.GROUP, select(ConsumerGroupHeartbeatRequest.group_id)),
        of_request(
            Operation.DESCRIBE, ResourceType.TOPIC, select(ConsumerGroupHeartbeatRequest.subscribed_topic_names)
        ),
        of_response(Operation.DESCRIBE, ResourceType.TOPIC, when="the member subscribes to a pattern"),
    ],
    failed=_failed,
)
def consumer_group_heartbeat(request: ConsumerGroupHeartbeatRequest, context: BrokerContext) -> Reply:
    """Pass the heartbeat to the group's coordinator."""
    if context.image.features.levels.get(GROUP_VERSION, 0) < 1:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
    if not request.group_id.strip():  # an empty group id has no coordinator, so every broker rejects it
        raise ApiError(ErrorCode.INVALID_REQUEST, "GroupId can't be empty.")
    client = Client(context.client_id or "", f"/{context.client_host}")
    event = ConsumerHeartbeat(request, context.version, client, str(uuid.uuid4()))
    return context.services.groups.submit(request.group_id, event)
