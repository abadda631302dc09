"""RemoveRaftVoter (81): removes a voter from the metadata quorum."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    Message,
    about,
    ignorable,
    int16,
    int32,
    nullable,
    string,
    uuid,
    versions,
)


class RemoveRaftVoterRequest(Message, api_key=81, kind="request", versions="0", flexible="0+"):
    """Requests the leader of the quorum to remove a voter (KIP-853)."""

    cluster_id: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("Id of the cluster, null for any.")
    ] = ""
    voter_id: Annotated[int, int32, versions("0+"), about("The voter's node id.")] = 0
    voter_directory_id: Annotated[bytes, uuid, versions("0+"), about("Id of the directory of its metadata log.")] = (
        bytes(16)
    )


class RemoveRaftVoterResponse(Message, api_key=81, kind="response", versions="0", flexible="0+"):
    """Whether the voter was removed."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("0+"), nullable("0+"), ignorable, about("What went wrong, for people.")
    ] = ""
