"""The record GroupMetadata (2) of `__consumer_offsets`: a generation of a classic group."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    Message,
    Struct,
    about,
    ignorable,
    int32,
    int64,
    nullable,
    octets,
    string,
    versions,
)


class GroupMetadataKey(Message, api_key=2, kind="coordinator-key", versions="0", flexible="none"):
    """The group."""

    group: Annotated[str, string, versions("0"), about("The group.")] = ""


class MemberMetadata(Struct):
    """A member of the group."""

    member_id: Annotated[str, string, versions("0+"), about("The member.")] = ""
    group_instance_id: Annotated[
        str | None, string, versions("3+"), nullable("3+"), ignorable, about("Set by a static member (KIP-345).")
    ] = None
    client_id: Annotated[str, string, versions("0+"), about("What its client calls itself.")] = ""
    client_host: Annotated[str, string, versions("0+"), about("Where it is, a slash before the address.")] = ""
    rebalance_timeout: Annotated[
        int,
        int32,
        versions("1+"),
        ignorable,
        about("How long others wait for it to join again, in milliseconds."),
    ] = -1
    session_timeout: Annotated[
        int, int32, versions("0+"), about("Silent for so many milliseconds it is taken for dead.")
    ] = 0
    subscription: Annotated[bytes, octets, versions("0+"), about("What it sent the chosen assignor.")] = b""
    assignment: Annotated[bytes, octets, versions("0+"), about("What the group's leader assigned to it.")] = b""


class GroupMetadataValue(Message, api_key=2, kind="coordinator-value", versions="0-4", flexible="4+"):
    """A generation of the group, with its members and their assignments."""

    protocol_type: Annotated[str, string, versions("0+"), about("What the group is for: `consumer`, `connect` ...")] = (
        ""
    )
    generation: Annotated[int, int32, versions("0+"), about("The group's generation.")] = 0
    protocol: Annotated[str | None, string, versions("0+"), nullable("0+"), about("The chosen protocol.")] = ""
    leader: Annotated[str | None, string, versions("0+"), nullable("0+"), about("Member id of the leader.")] = ""
    current_state_timestamp: Annotated[
        int, int64, versions("2+"), ignorable, about("When the group came into its state, in milliseconds.")
    ] = -1
    members: Annotated[list[MemberMetadata], versions("0+"), about("The members.")] = []
