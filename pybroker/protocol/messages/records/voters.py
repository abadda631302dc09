"""The control record VotersRecord."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    ZERO_UUID,
    Message,
    Struct,
    about,
    field,
    int16,
    int32,
    map_key,
    string,
    uint16,
    uuid,
    versions,
)


class Endpoint(Struct):
    """A listener of the voter."""

    name: Annotated[str, string, versions("0+"), map_key, about("The listener's name.")] = ""
    host: Annotated[str, string, versions("0+"), about("Host name or address to connect to.")] = ""
    port: Annotated[int, uint16, versions("0+"), about("Port to connect to.")] = 0


class KRaftVersionFeature(Struct):
    """The `kraft.version` levels that the voter supports."""

    min_supported_version: Annotated[int, int16, versions("0+"), about("The lowest level it can run with.")] = 0
    max_supported_version: Annotated[int, int16, versions("0+"), about("The highest level it can run with.")] = 0


class Voter(Struct):
    """A voter of the quorum."""

    voter_id: Annotated[int, int32, versions("0+"), about("The voter's node id.")] = 0
    voter_directory_id: Annotated[bytes, uuid, versions("0+"), about("Its metadata log directory.")] = ZERO_UUID
    endpoints: Annotated[list[Endpoint], versions("0+"), about("Where the voter is reached.")] = []
    kraft_version_feature: Annotated[
        KRaftVersionFeature, versions("0+"), about("The levels that the voter can run with.")
    ] = field(default_factory=KRaftVersionFeature)


class VotersRecord(Message, kind="data", versions="0", flexible="0+"):
    """The voters of the quorum."""

    version: Annotated[int, int16, versions("0+"), about("Version of this record.")] = 0
    voters: Annotated[list[Voter], versions("0+"), about("All who may vote.")] = []
