"""The metadata record RemoveUserScramCredentialRecord (22)."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, int8, string, versions


class RemoveUserScramCredentialRecord(Message, api_key=22, kind="metadata", versions="0", flexible="0+"):
    """A SCRAM credential of a user is removed."""

    name: Annotated[str, string, versions("0+"), about("The user.")] = ""
    mechanism: Annotated[int, int8, versions("0+"), about("1 for SCRAM-SHA-256, 2 for SCRAM-SHA-512.")] = 0
