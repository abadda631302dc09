"""The control record LeaderChangeMessage."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import ZERO_UUID, Message, Struct, int16, int32, uuid, versions


class Voter(Struct):
    """Voter."""

    voter_id: Annotated[int, int32, versions("0+")] = 0
    voter_directory_id: Annotated[bytes, uuid, versions("1+")] = ZERO_UUID


class LeaderChangeMessage(Message, kind="data", versions="0-1", flexible="0+"):
    """LeaderChangeMessage."""

    version: Annotated[int, int16, versions("0+")] = 0
    leader_id: Annotated[int, int32, versions("0+")] = 0
    voters: Annotated[list[Voter], versions("0+")] = []
    granting_voters: Annotated[list[Voter], versions("0+")] = []
