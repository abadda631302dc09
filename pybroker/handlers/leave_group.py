"""LeaveGroup: members leave a classic group, or are sent away.

Key
    13

Versions
    0-5

Behaviour
    - Each member leaves, or does not, by itself. Without a member id a static member is named by its instance id alone,
      which is how an administrator sends one away.
    - The group rebalances at once. Its offsets stay.
    - An unknown group is UNKNOWN_MEMBER_ID for each member.
    - Errors: INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.

Version notes
    - One member in versions 0-2, whose error is the whole answer; many from version 3 on.
    - From version 5 on members say why (KIP-800); it goes to the broker's log.

Not done
    - Rights. Throttling: throttle_time_ms is always 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.errors import InvalidGroupIdError
from pybroker.coordinator.group.events import LeaveGroup
from pybroker.handlers.registry import handles
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

if TYPE_CHECKING:
    from pybroker.handlers.context import RequestContext
    from pybroker.handlers.errors import WireError
    from pybroker.machine.reply import Reply

_MANY = 3


def _failed(request: LeaveGroupRequest, version: int, error: WireError) -> LeaveGroupResponse:
    if error.code is not ErrorCode.UNKNOWN_MEMBER_ID or version < _MANY:
        return LeaveGroupResponse(error_code=error.code)
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=member.member_id, group_instance_id=member.group_instance_id, error_code=error.code
            )
            for member in request.members
        ]
    )


@handles(LeaveGroupRequest, failed=_failed)
def leave_group(request: LeaveGroupRequest, context: RequestContext) -> Reply:
    """Let members leave."""
    if not request.group_id:
        raise InvalidGroupIdError
    if context.version < _MANY:
        request.members = [MemberIdentity(member_id=request.member_id)]
    reply = context.services.groups.submit(request.group_id, LeaveGroup(request))
    return reply if context.version >= _MANY else reply.through(_of_one)


def _of_one(response: LeaveGroupResponse) -> LeaveGroupResponse:
    code = response.error_code or response.members[0].error_code
    return LeaveGroupResponse(error_code=code)
