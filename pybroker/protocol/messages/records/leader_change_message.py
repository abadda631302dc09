"""The control record LeaderChangeMessage."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import ZERO_UUID, Message, Struct, about, int16, int32, uuid, versions


class Voter(Struct):
    """A voter of the quorum."""

    voter_id: Annotated[int, int32, versions("0+"), about("The voter's node id.")] = 0
    voter_directory_id: Annotated[bytes, uuid, versions("1+"), about("Its metadata log directory.")] = ZERO_UUID


class LeaderChangeMessage(Message, kind="data", versions="0-1", flexible="0+"):
    """The value of the control record that a new leader appends at the start of its epoch."""

    version: Annotated[int, int16, versions("0+"), about("Version of this record.")] = 0
    leader_id: Annotated[int, int32, versions("0+"), about("The new leader's node id.")] = 0
    voters: Annotated[list[Voter], versions("0+"), about("All who may vote.")] = []
    granting_voters: Annotated[list[Voter], versions("0+"), about("Those who voted for the leader.")] = []
