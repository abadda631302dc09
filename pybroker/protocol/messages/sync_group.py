"""SyncGroup (14): the second half of a rebalance in the classic protocol."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, ignorable, int16, int32, nullable, octets, string, versions


class SyncGroupRequestAssignment(Struct):
    """One member's assignment."""

    member_id: Annotated[str, string, versions("0+"), about("The member.")] = ""
    assignment: Annotated[bytes, octets, versions("0+"), about("What the member gets.")] = b""


class SyncGroupRequest(Message, api_key=14, kind="request", versions="0-5", flexible="4+"):
    """Requests the member's assignment. The leader's request carries the assignments of all members."""

    group_id: Annotated[str, string, versions("0+"), about("The group.")] = ""
    generation_id: Annotated[int, int32, versions("0+"), about("The group's generation.")] = 0
    member_id: Annotated[str, string, versions("0+"), about("The member.")] = ""
    group_instance_id: Annotated[
        str | None, string, versions("3+"), nullable("3+"), about("Set by a static member (KIP-345).")
    ] = None
    protocol_type: Annotated[
        str | None,
        string,
        versions("5+"),
        nullable("5+"),
        ignorable,
        about("What the group is for: `consumer`, `connect` ..."),
    ] = None
    protocol_name: Annotated[
        str | None, string, versions("5+"), nullable("5+"), ignorable, about("The chosen protocol.")
    ] = None
    assignments: Annotated[
        list[SyncGroupRequestAssignment], versions("0+"), about("From the leader: everyone's assignment.")
    ] = []


class SyncGroupResponse(Message, api_key=14, kind="response", versions="0-5", flexible="4+"):
    """The member's assignment."""

    throttle_time_ms: Annotated[
        int, int32, versions("1+"), ignorable, about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    protocol_type: Annotated[
        str | None,
        string,
        versions("5+"),
        nullable("5+"),
        ignorable,
        about("What the group is for: `consumer`, `connect` ..."),
    ] = None
    protocol_name: Annotated[
        str | None, string, versions("5+"), nullable("5+"), ignorable, about("The chosen protocol.")
    ] = None
    assignment: Annotated[bytes, octets, versions("0+"), about("What this member gets.")] = b""
