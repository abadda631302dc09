"""LeaveGroup (13): removes members from a group, from version 3 several at once."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, ignorable, int16, int32, nullable, string, versions

FIRST_VERSION_WITH_MANY_MEMBERS = 3


class MemberIdentity(Struct):
    """A member to remove."""

    member_id: Annotated[str, string, versions("3+"), about("The member.")] = ""
    group_instance_id: Annotated[
        str | None, string, versions("3+"), nullable("3+"), about("Set by a static member (KIP-345).")
    ] = None
    reason: Annotated[
        str | None, string, versions("5+"), nullable("5+"), ignorable, about("Why it leaves, for the log (KIP-800).")
    ] = None


class LeaveGroupRequest(Message, api_key=13, kind="request", versions="0-5", flexible="4+"):
    """Removes members from a group."""

    group_id: Annotated[str, string, versions("0+"), about("The group.")] = ""
    member_id: Annotated[str, string, versions("0-2"), about("The member.")] = ""
    members: Annotated[list[MemberIdentity], versions("3+"), about("Those who leave.")] = []


class MemberResponse(Struct):
    """The result for one member."""

    member_id: Annotated[str, string, versions("3+"), about("The member.")] = ""
    group_instance_id: Annotated[
        str | None, string, versions("3+"), nullable("3+"), about("Set by a static member (KIP-345).")
    ] = ""
    error_code: Annotated[int, int16, versions("3+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0


class LeaveGroupResponse(Message, api_key=13, kind="response", versions="0-5", flexible="4+"):
    """The result for each member."""

    throttle_time_ms: Annotated[
        int, int32, versions("1+"), ignorable, about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    members: Annotated[list[MemberResponse], versions("3+"), about("One result for each member.")] = []
