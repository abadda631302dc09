"""List, describe and delete groups, of whatever type they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.classic.group import ClassicGroup
from pybroker.coordinator.group.classic.transitions import ClassicState
from pybroker.coordinator.group.errors import GroupError, GroupIdNotFoundError
from pybroker.coordinator.group.offsets import MOST_REMOVED
from pybroker.coordinator.group.records import build_offset_tombstone
from pybroker.machine.machine import Outcome, Timer
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.delete_groups import DeletableGroupResult
from pybroker.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from pybroker.protocol.messages.list_groups import ListedGroup

if TYPE_CHECKING:
    from pybroker.coordinator.group.classic.members import ClassicMember
    from pybroker.coordinator.group.events import DeleteGroups, DescribeGroups, ListGroups
    from pybroker.coordinator.group.group_change import Record
    from pybroker.coordinator.group.view import Group, GroupView

_FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND = 6
"""From this version on an unknown group is an error; before, it is a dead group (KIP-1043)."""
_MAX_SHOWN_BYTES = 32_767 - len("Group  is not a classic group.")


def list_groups(view: GroupView, event: ListGroups, _now: int) -> Outcome[Record, list[ListedGroup]]:
    """List the groups in these states and of these types; case is ignored."""
    listed = [
        ListedGroup(
            group_id=group.id,
            protocol_type=group.protocol_type or "",
            group_state=group.state_name,
            group_type=group.type_name,
        )
        for group in view.groups.values()
        if (not event.states or group.state_name.lower() in event.states)
        and (not event.types or group.type_name.lower() in event.types)
    ]
    return Outcome((), listed)


def describe_groups(view: GroupView, event: DescribeGroups, _now: int) -> Outcome[Record, list[DescribedGroup]]:
    """Describe groups of the classic protocol."""
    return Outcome((), [_describe(view.group(group_id), group_id, event.version) for group_id in event.group_ids])


def _describe(group: Group | None, group_id: str, version: int) -> DescribedGroup:
    if not isinstance(group, ClassicGroup):
        described = DescribedGroup(group_id=group_id, group_state=ClassicState.DEAD.value)
        if version >= _FIRST_VERSION_WITH_GROUP_ID_NOT_FOUND:
            described.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            missing = "not found" if group is None else "is not a classic group"
            described.error_message = f"Group {_shown(group_id)} {missing}."
        return described
    protocol = group.protocol if group.state is ClassicState.STABLE else None
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=[_member(member, protocol) for member in group.members.in_order()],
    )


def _shown(group_id: str) -> str:
    """Return a group's id cut to the maximum length in a message: an id may be as long as any string."""
    return group_id.encode()[:_MAX_SHOWN_BYTES].decode(errors="ignore")


def _member(member: ClassicMember, protocol: str | None) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=b"" if protocol is None else member.metadata(protocol),
        member_assignment=member.assignment,
    )


def delete_groups(view: GroupView, event: DeleteGroups, _now: int) -> Outcome[Record, list[DeletableGroupResult]]:
    """Delete groups without members, and their offsets; each succeeds or fails by itself.

    If they have many offsets, only the first groups are deleted: the caller repeats the request for the others.
    """
    records: list[Record] = []
    timers: list[Timer] = []
    results = []
    for group_id in event.group_ids:
        if len(records) >= MOST_REMOVED:
            break
        try:
            group = _deletable(view, group_id)
        except GroupError as error:
            results.append(DeletableGroupResult(group_id=group_id, error_code=error.code))
            continue
        partitions = {**dict.fromkeys(view.offsets(group_id)), **dict.fromkeys(view.pending(group_id))}
        records += [build_offset_tombstone(group_id, *partition) for partition in partitions]
        records += group.build_tombstones()
        timers += [Timer(key, None) for key in group.timer_keys()]
        results.append(DeletableGroupResult(group_id=group_id, error_code=ErrorCode.NONE))
    return Outcome(tuple(records), results, tuple(timers))


def _deletable(view: GroupView, group_id: str) -> Group:
    group = view.group(group_id)
    if group is None:
        raise GroupIdNotFoundError(f"Group {group_id} not found.")
    group.check_delete()
    return group
