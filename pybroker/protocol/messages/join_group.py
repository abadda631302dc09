"""JoinGroup (11): the first half of a rebalance in the classic protocol."""

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
    map_key,
    nullable,
    octets,
    string,
    versions,
)


class JoinGroupRequestProtocol(Struct):
    """A protocol that the member supports."""

    name: Annotated[str, string, versions("0+"), map_key, about("The protocol's name: an assignor.")] = ""
    metadata: Annotated[bytes, octets, versions("0+"), about("What the member sends that assignor.")] = b""


class JoinGroupRequest(Message, api_key=11, kind="request", versions="0-9", flexible="6+"):
    """Joins a group, or rejoins it in a rebalance."""

    group_id: Annotated[str, string, versions("0+"), about("The group.")] = ""
    session_timeout_ms: Annotated[
        int, int32, versions("0+"), about("A member silent for so many milliseconds is dead.")
    ] = 0
    rebalance_timeout_ms: Annotated[
        int,
        int32,
        versions("1+"),
        ignorable,
        about("How long others wait for this member to join again, in milliseconds."),
    ] = -1
    member_id: Annotated[str, string, versions("0+"), about("Empty for a new member.")] = ""
    group_instance_id: Annotated[
        str | None, string, versions("5+"), nullable("5+"), about("Set by a static member (KIP-345).")
    ] = None
    protocol_type: Annotated[str, string, versions("0+"), about("What the group is for: `consumer`, `connect` ...")] = (
        ""
    )
    protocols: Annotated[
        list[JoinGroupRequestProtocol], versions("0+"), about("The protocols the member can use, the best first.")
    ] = []
    reason: Annotated[
        str | None, string, versions("8+"), nullable("8+"), ignorable, about("Why it joins, for the log (KIP-800).")
    ] = None


class JoinGroupResponseMember(Struct):
    """A member and its metadata, for the group's leader."""

    member_id: Annotated[str, string, versions("0+"), about("The member.")] = ""
    group_instance_id: Annotated[
        str | None, string, versions("5+"), nullable("5+"), ignorable, about("Set by a static member (KIP-345).")
    ] = None
    metadata: Annotated[bytes, octets, versions("0+"), about("What the member sent the chosen assignor.")] = b""


class JoinGroupResponse(Message, api_key=11, kind="response", versions="0-9", flexible="6+"):
    """The new generation."""

    throttle_time_ms: Annotated[
        int, int32, versions("2+"), ignorable, about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    generation_id: Annotated[int, int32, versions("0+"), about("The group's generation.")] = -1
    protocol_type: Annotated[
        str | None,
        string,
        versions("7+"),
        nullable("7+"),
        ignorable,
        about("What the group is for: `consumer`, `connect` ..."),
    ] = None
    protocol_name: Annotated[str | None, string, versions("0+"), nullable("7+"), about("The chosen protocol.")] = ""
    leader: Annotated[str, string, versions("0+"), about("Member id of the one who assigns.")] = ""
    skip_assignment: Annotated[
        bool, boolean, versions("9+"), about("Whether the leader keeps the standing assignment (KIP-814).")
    ] = False
    member_id: Annotated[str, string, versions("0+"), about("The member.")] = ""
    members: Annotated[
        list[JoinGroupResponseMember], versions("0+"), about("All members, for the leader; empty for the others.")
    ] = []
