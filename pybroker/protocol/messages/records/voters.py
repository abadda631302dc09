"""The control record VotersRecord."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    ZERO_UUID,
    Message,
    Struct,
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
    """Endpoint."""

    name: Annotated[str, string, versions("0+"), map_key] = ""
    host: Annotated[str, string, versions("0+")] = ""
    port: Annotated[int, uint16, versions("0+")] = 0


class KRaftVersionFeature(Struct):
    """KRaftVersionFeature."""

    min_supported_version: Annotated[int, int16, versions("0+")] = 0
    max_supported_version: Annotated[int, int16, versions("0+")] = 0


class Voter(Struct):
    """Voter."""

    voter_id: Annotated[int, int32, versions("0+")] = 0
    voter_directory_id: Annotated[bytes, uuid, versions("0+")] = ZERO_UUID
    endpoints: Annotated[list[Endpoint], versions("0+")] = []
    k_raft_version_feature: Annotated[KRaftVersionFeature, versions("0+")] = field(default_factory=KRaftVersionFeature)


class VotersRecord(Message, kind="data", versions="0", flexible="0+"):
    """VotersRecord."""

    version: Annotated[int, int16, versions("0+")] = 0
    voters: Annotated[list[Voter], versions("0+")] = []
