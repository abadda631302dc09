"""ListGroups (16): the groups that a broker coordinates."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, ignorable, int16, int32, string, versions


class ListGroupsRequest(Message, api_key=16, kind="request", versions="0-5", flexible="3+"):
    """Requests the groups that a broker coordinates."""

    states_filter: Annotated[list[str], string, versions("4+"), about("States to list; empty for all.")] = []
    types_filter: Annotated[list[str], string, versions("5+"), about("Types to list; empty for all.")] = []


class ListedGroup(Struct):
    """A group."""

    group_id: Annotated[str, string, versions("0+"), about("The group.")] = ""
    protocol_type: Annotated[str, string, versions("0+"), about("What the group is for: `consumer`, `connect` ...")] = (
        ""
    )
    group_state: Annotated[str, string, versions("4+"), ignorable, about("State of the group.")] = ""
    group_type: Annotated[
        str, string, versions("5+"), ignorable, about("`classic`, `consumer`, `share` or `streams`.")
    ] = ""


class ListGroupsResponse(Message, api_key=16, kind="response", versions="0-5", flexible="3+"):
    """The groups that the broker coordinates."""

    throttle_time_ms: Annotated[
        int, int32, versions("1+"), ignorable, about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    groups: Annotated[list[ListedGroup], versions("0+"), about("What was found.")] = []
