"""AddRaftVoter (80): adds a voter to the metadata quorum."""

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
    string,
    uint16,
    uuid,
    versions,
)


class Listener(Struct):
    """A listener of a voter."""

    name: Annotated[str, string, versions("0+"), map_key, about("The listener's name.")] = ""
    host: Annotated[str, string, versions("0+"), about("Host name or address to connect to.")] = ""
    port: Annotated[int, uint16, versions("0+"), about("Port to connect to.")] = 0


class AddRaftVoterRequest(Message, api_key=80, kind="request", versions="0-1", flexible="0+"):
    """Requests the leader of the quorum to add a voter (KIP-853)."""

    cluster_id: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("Id of the cluster, null for any.")
    ] = ""
    timeout_ms: Annotated[int, int32, versions("0+"), about("How long the leader may take, in milliseconds.")] = 0
    voter_id: Annotated[int, int32, versions("0+"), about("The voter's node id.")] = 0
    voter_directory_id: Annotated[bytes, uuid, versions("0+"), about("Id of the directory of its metadata log.")] = (
        bytes(16)
    )
    listeners: Annotated[list[Listener], versions("0+"), about("Where it is reached.")] = []
    ack_when_committed: Annotated[
        bool, boolean, versions("1+"), about("Whether to answer only when the voters are committed.")
    ] = True


class AddRaftVoterResponse(Message, api_key=80, kind="response", versions="0-1", flexible="0+"):
    """Whether the voter was added."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("0+"), nullable("0+"), ignorable, about("What went wrong, for people.")
    ] = ""
