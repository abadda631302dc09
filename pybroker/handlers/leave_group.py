"""LeaveGroup: members leave a classic group, or are removed from it.

Key
    13

Versions
    0-5

Behaviour
    - Each member succeeds or fails independently. A static member may be identified only by its instance id, without a
      member id, as administrators do to remove it.
    - The group rebalances at once. Its offsets are kept.
    - UNKNOWN_MEMBER_ID for each member of an unknown group.
    - Errors: INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.

Version notes
    - One member in versions 0-2, with a top-level error; many since version 3.
    - Since version 5, members send a reason (KIP-800), which is logged.

Not done
    - None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.coordinator.group.errors import InvalidGroupIdError
from pybroker.coordinator.group.events import LeaveGroup
from pybroker.coordinator.runtime.errors import CoordinatorError
from pybroker.handlers.errors import wire_error
from pybroker.handlers.registry import handles
from pybroker.machine.parts import MANY, parts
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.leave_group import (
    FIRST_VERSION_WITH_MANY_MEMBERS,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.requirements import of_request
from pybroker.security.selectors import select

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from pybroker.handlers.context import BrokerContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.reply import Reply


def _failed(request: LeaveGroupRequest, version: int, error: WireError) -> LeaveGroupResponse:
    if error.code is not ErrorCode.UNKNOWN_MEMBER_ID or version < FIRST_VERSION_WITH_MANY_MEMBERS:
        return LeaveGroupResponse(error_code=error.code)
    return LeaveGroupResponse(members=[_lost(member, error.code) for member in request.members])


@handles(
    LeaveGroupRequest,
    requires=[of_request(Operation.READ, ResourceType.GROUP, select(LeaveGroupRequest.group_id))],
    failed=_failed,
)
def leave_group(request: LeaveGroupRequest, context: BrokerContext) -> Reply | Awaitable[LeaveGroupResponse]:
    """Pass the members to the group's coordinator."""
    if not request.group_id:
        raise InvalidGroupIdError
    if context.version < FIRST_VERSION_WITH_MANY_MEMBERS:
        request.members = [MemberIdentity(member_id=request.member_id)]
    if len(request.members) > MANY:
        return _leave_in_parts(request, context)
    reply = context.services.groups.submit(request.group_id, LeaveGroup(request))
    return reply if context.version >= FIRST_VERSION_WITH_MANY_MEMBERS else reply.through(_of_one)


async def _leave_in_parts(request: LeaveGroupRequest, context: BrokerContext) -> LeaveGroupResponse:
    """Remove many members in parts, so that the loop serves other requests in between."""
    members: list[MemberResponse] = []
    for part in parts(request.members):
        requested = msgspec.structs.replace(request, members=part)
        try:
            response: LeaveGroupResponse = await context.services.groups.submit(request.group_id, LeaveGroup(requested))
        except CoordinatorError as error:
            response = LeaveGroupResponse(members=[_lost(member, wire_error(error).code) for member in part])
        members += response.members
    return LeaveGroupResponse(members=members)


def _lost(member: MemberIdentity, code: ErrorCode) -> MemberResponse:
    return MemberResponse(member_id=member.member_id, group_instance_id=member.group_instance_id, error_code=code)


def _of_one(response: LeaveGroupResponse) -> LeaveGroupResponse:
    code = response.error_code or response.members[0].error_code
    return LeaveGroupResponse(error_code=code)
