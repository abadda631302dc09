"""The metadata record UserScramCredentialRecord (11)."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, int8, int32, octets, string, versions


class UserScramCredentialRecord(Message, api_key=11, kind="metadata", versions="0", flexible="0+"):
    """A SCRAM credential of a user is added or replaced (KIP-554)."""

    name: Annotated[str, string, versions("0+"), about("The user.")] = ""
    mechanism: Annotated[int, int8, versions("0+"), about("1 for SCRAM-SHA-256, 2 for SCRAM-SHA-512.")] = 0
    salt: Annotated[bytes, octets, versions("0+"), about("Random bytes that the password was hashed with.")] = b""
    stored_key: Annotated[bytes, octets, versions("0+"), about("What the broker checks the client by.")] = b""
    server_key: Annotated[bytes, octets, versions("0+"), about("What the client checks the broker by.")] = b""
    iterations: Annotated[int, int32, versions("0+"), about("How often it was hashed.")] = 0
