"""AlterUserScramCredentials (51): adds, replaces and removes SCRAM credentials of users."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, int8, int16, int32, nullable, octets, string, versions


class ScramCredentialDeletion(Struct):
    """A credential to remove."""

    name: Annotated[str, string, versions("0+"), about("The user.")] = ""
    mechanism: Annotated[int, int8, versions("0+"), about("1 for SCRAM-SHA-256, 2 for SCRAM-SHA-512.")] = 0


class ScramCredentialUpsertion(Struct):
    """A credential to add or replace."""

    name: Annotated[str, string, versions("0+"), about("The user.")] = ""
    mechanism: Annotated[int, int8, versions("0+"), about("1 for SCRAM-SHA-256, 2 for SCRAM-SHA-512.")] = 0
    iterations: Annotated[int, int32, versions("0+"), about("How often the password was hashed.")] = 0
    salt: Annotated[bytes, octets, versions("0+"), about("Random bytes that it was hashed with.")] = b""
    salted_password: Annotated[bytes, octets, versions("0+"), about("The hash.")] = b""


class AlterUserScramCredentialsRequest(Message, api_key=51, kind="request", versions="0", flexible="0+"):
    """Changes SCRAM credentials, at most one for each user (KIP-554)."""

    deletions: Annotated[list[ScramCredentialDeletion], versions("0+"), about("What to remove.")] = []
    upsertions: Annotated[list[ScramCredentialUpsertion], versions("0+"), about("What to add or replace.")] = []


class AlterUserScramCredentialsResult(Struct):
    """The result for one user."""

    user: Annotated[str, string, versions("0+"), about("The user.")] = ""
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("What went wrong, for people.")
    ] = ""


class AlterUserScramCredentialsResponse(Message, api_key=51, kind="response", versions="0", flexible="0+"):
    """The result for each user."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    results: Annotated[list[AlterUserScramCredentialsResult], versions("0+"), about("One for each user.")] = []
