"""UpdateRaftVoter (82): a voter reports its endpoints and versions to the leader of the quorum."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    Message,
    Struct,
    about,
    field,
    int16,
    int32,
    map_key,
    nullable,
    string,
    tag,
    uint16,
    uuid,
    versions,
)


class Listener(Struct):
    """A listener of a voter."""

    name: Annotated[str, string, versions("0+"), map_key, about("The listener's name.")] = ""
    host: Annotated[str, string, versions("0+"), about("Host name or address to connect to.")] = ""
    port: Annotated[int, uint16, versions("0+"), about("Port to connect to.")] = 0


class KRaftVersionFeature(Struct):
    """The `kraft.version` levels that a voter supports."""

    min_supported_version: Annotated[int, int16, versions("0+"), about("The lowest version.")] = 0
    max_supported_version: Annotated[int, int16, versions("0+"), about("The highest version.")] = 0


class UpdateRaftVoterRequest(Message, api_key=82, kind="request", versions="0", flexible="0+"):
    """Reports the endpoints and `kraft.version` levels of a voter (KIP-853)."""

    cluster_id: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("Id of the cluster, null for any.")
    ] = ""
    current_leader_epoch: Annotated[
        int, int32, versions("0+"), about("The leader epoch that the voter knows, -1 for none.")
    ] = 0
    voter_id: Annotated[int, int32, versions("0+"), about("The voter's node id.")] = 0
    voter_directory_id: Annotated[bytes, uuid, versions("0+"), about("Id of the directory of its metadata log.")] = (
        bytes(16)
    )
    listeners: Annotated[list[Listener], versions("0+"), about("Where it is reached.")] = []
    kraft_version_feature: Annotated[
        KRaftVersionFeature, versions("0+"), about("The versions of the quorum's protocol that it supports.")
    ] = field(default_factory=KRaftVersionFeature)


class CurrentLeader(Struct):
    """The leader of the quorum and its address."""

    leader_id: Annotated[int, int32, versions("0+"), about("The leader's id, -1 where it is not known.")] = -1
    leader_epoch: Annotated[int, int32, versions("0+"), about("The newest leader epoch that is known.")] = -1
    host: Annotated[str, string, versions("0+"), about("Host name or address to connect to.")] = ""
    port: Annotated[int, int32, versions("0+"), about("Port to connect to.")] = 0


class UpdateRaftVoterResponse(Message, api_key=82, kind="response", versions="0", flexible="0+"):
    """Whether the leader accepted the endpoints, and the current leader."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    current_leader: Annotated[CurrentLeader, versions("0+"), tag(0, "0+"), about("Who leads.")] = field(
        default_factory=CurrentLeader
    )
