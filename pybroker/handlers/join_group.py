"""JoinGroup: a member joins a classic group, or a rebalance.

Key
    11

Versions
    0-9

Behaviour
    - The response is sent when the rebalance completes: when every member has joined, or the rebalance timeout expires.
    - The first rebalance of a group waits group.initial.rebalance.delay.ms for other members, and again after each that
      joins, at most for the rebalance timeout (KIP-134).
    - Members vote for the protocol among those that all support. The leader receives the member list and assigns.
    - A static member (KIP-345) that joins without a member id replaces and fences the one with its instance id. If the
      group is stable and its protocol is unchanged, there is no rebalance.
    - A newer JoinGroup of a member replaces its waiting one.
    - Errors: INVALID_GROUP_ID, INVALID_SESSION_TIMEOUT, INCONSISTENT_GROUP_PROTOCOL, UNKNOWN_MEMBER_ID,
      FENCED_INSTANCE_ID, MEMBER_ID_REQUIRED, GROUP_MAX_SIZE_REACHED, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.

Version notes
    - Version 0 uses the session timeout as the rebalance timeout.
    - The protocol name of an error response is null since version 7, and empty before.
    - Since version 4, a new dynamic member receives an id with MEMBER_ID_REQUIRED, and rejoins with it (KIP-394).
    - Since version 9, the leader of a group that keeps its assignment is requested to skip the assignment (KIP-814).

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from pybroker.coordinator.group.errors import InvalidGroupIdError, InvalidSessionTimeoutError
from pybroker.coordinator.group.events import Client, JoinGroup
from pybroker.handlers.registry import handles
from pybroker.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.reply import Reply

_FIRST_VERSION_WITH_NULL_PROTOCOL = 7


def _failed(request: JoinGroupRequest, version: int, error: WireError) -> JoinGroupResponse:
    name = None if version >= _FIRST_VERSION_WITH_NULL_PROTOCOL else ""
    return JoinGroupResponse(error_code=error.code, member_id=request.member_id, protocol_name=name)


@handles(
    JoinGroupRequest,
    requires=[of_request(Operation.READ, ResourceType.GROUP, select(JoinGroupRequest.group_id))],
    failed=_failed,
)
def join_group(request: JoinGroupRequest, context: BrokerContext) -> Reply:
    """Pass the member to the group's coordinator."""
    config = context.services.config
    if not request.group_id:
        raise InvalidGroupIdError
    if not config.group_min_session_timeout_ms <= request.session_timeout_ms <= config.group_max_session_timeout_ms:
        raise InvalidSessionTimeoutError
    client = Client(context.client_id or "", f"/{context.client_host}")
    event = JoinGroup(request, context.version, client, str(uuid4()))
    reply = context.services.groups.submit(request.group_id, event)
    return reply.through(_with_null if context.version >= _FIRST_VERSION_WITH_NULL_PROTOCOL else _without_null)


def _with_null(response: JoinGroupResponse) -> JoinGroupResponse:
    if response.error_code:
        response.protocol_name = None
    return response


def _without_null(response: JoinGroupResponse) -> JoinGroupResponse:
    response.protocol_name = response.protocol_name or ""
    return response
