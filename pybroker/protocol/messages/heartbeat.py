"""Heartbeat (12): renews the session of a member of a classic group."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, ignorable, int16, int32, nullable, string, versions


class HeartbeatRequest(Message, api_key=12, kind="request", versions="0-4", flexible="4+"):
    """Renews the session of a member."""

    group_id: Annotated[str, string, versions("0+"), about("The group.")] = ""
    generation_id: Annotated[int, int32, versions("0+"), about("The group's generation.")] = 0
    member_id: Annotated[str, string, versions("0+"), about("The member.")] = ""
    group_instance_id: Annotated[
        str | None, string, versions("3+"), nullable("3+"), about("Set by a static member (KIP-345).")
    ] = None


class HeartbeatResponse(Message, api_key=12, kind="response", versions="0-4", flexible="4+"):
    """The result; an error code if the member has to rejoin the group."""

    throttle_time_ms: Annotated[
        int, int32, versions("1+"), ignorable, about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
