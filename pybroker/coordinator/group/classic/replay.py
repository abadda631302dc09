"""Builds a classic group from a record of this or another coordinator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.coordinator.group.classic.group import ClassicGroup, subscribed_topics
from pybroker.coordinator.group.classic.members import ClassicMember, ClassicMembers
from pybroker.coordinator.group.classic.transitions import ClassicState
from pybroker.coordinator.group.ids import Generation, GroupId, InstanceId, MemberId

if TYPE_CHECKING:
    from pybroker.protocol.messages.group_records.group_metadata import GroupMetadataValue, MemberMetadata


def build_group(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """Return the group of a record; no member waits, and every member supports only the protocol of the record."""
    members = [_member(member, value.protocol) for member in value.members]
    protocol_type = value.protocol_type or None
    return ClassicGroup(
        id=GroupId(group_id),
        state=ClassicState.STABLE if members else ClassicState.EMPTY,
        since_ms=None if value.current_state_timestamp == -1 else value.current_state_timestamp,
        generation=Generation(value.generation),
        protocol_type=protocol_type,
        protocol=value.protocol,
        leader=None if value.leader is None else MemberId(value.leader),
        members=ClassicMembers(members),
        subscribed=subscribed_topics(protocol_type, value.protocol, members),
    )


def _member(written: MemberMetadata, protocol: str | None) -> ClassicMember:
    return ClassicMember(
        id=MemberId(written.member_id),
        instance_id=None if written.group_instance_id is None else InstanceId(written.group_instance_id),
        client_id=written.client_id,
        client_host=written.client_host,
        # Version 0 has no rebalance timeout, which is the session timeout then.
        rebalance_timeout_ms=written.session_timeout if written.rebalance_timeout == -1 else written.rebalance_timeout,
        session_timeout_ms=written.session_timeout,
        protocols=((protocol or "", written.subscription),),
        assignment=written.assignment,
    )
