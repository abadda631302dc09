"""DescribeGroups (15): describes groups of the classic protocol."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    Message,
    Struct,
    about,
    boolean,
    ignorable,
    int16,
    int32,
    nullable,
    octets,
    string,
    versions,
)


class DescribeGroupsRequest(Message, api_key=15, kind="request", versions="0-6", flexible="5+"):
    """Requests groups of the classic protocol and their members."""

    groups: Annotated[list[str], string, versions("0+"), about("The groups asked about.")] = []
    include_authorized_operations: Annotated[
        bool, boolean, versions("3+"), about("Whether to say what the client may do to each group.")
    ] = False


class DescribedGroupMember(Struct):
    """A member of a group."""

    member_id: Annotated[str, string, versions("0+"), about("The member.")] = ""
    group_instance_id: Annotated[
        str | None, string, versions("4+"), nullable("4+"), ignorable, about("Set by a static member (KIP-345).")
    ] = None
    client_id: Annotated[str, string, versions("0+"), about("The client's name for itself.")] = ""
    client_host: Annotated[str, string, versions("0+"), about("Where it connects from.")] = ""
    member_metadata: Annotated[bytes, octets, versions("0+"), about("What the member sent the chosen assignor.")] = b""
    member_assignment: Annotated[bytes, octets, versions("0+"), about("What the member has.")] = b""


class DescribedGroup(Struct):
    """A group and its members."""

    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("6+"), nullable("6+"), about("What went wrong, for people.")
    ] = None
    group_id: Annotated[str, string, versions("0+"), about("The group.")] = ""
    group_state: Annotated[str, string, versions("0+"), about("State of the group.")] = ""
    protocol_type: Annotated[str, string, versions("0+"), about("What the group is for: `consumer`, `connect` ...")] = (
        ""
    )
    protocol_data: Annotated[str, string, versions("0+"), about("The chosen protocol.")] = ""
    members: Annotated[list[DescribedGroupMember], versions("0+"), about("Its members.")] = []
    authorized_operations: Annotated[
        int, int32, versions("3+"), about("A bit for each operation allowed; the lowest number where not asked.")
    ] = -2147483648


class DescribeGroupsResponse(Message, api_key=15, kind="response", versions="0-6", flexible="5+"):
    """Groups and their members."""

    throttle_time_ms: Annotated[
        int, int32, versions("1+"), ignorable, about("Milliseconds that the quota made the client wait.")
    ] = 0
    groups: Annotated[list[DescribedGroup], versions("0+"), about("One result for each group.")] = []
