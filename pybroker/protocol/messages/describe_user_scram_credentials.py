"""DescribeUserScramCredentials (50): the SCRAM mechanisms that users have credentials for."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, int8, int16, int32, nullable, string, versions


class UserName(Struct):
    """A requested user."""

    name: Annotated[str, string, versions("0+"), about("The user.")] = ""


class DescribeUserScramCredentialsRequest(Message, api_key=50, kind="request", versions="0", flexible="0+"):
    """Requests the mechanisms and iterations of users' credentials (KIP-554)."""

    users: Annotated[
        list[UserName] | None, versions("0+"), nullable("0+"), about("The users; null or none for all of them.")
    ] = []


class CredentialInfo(Struct):
    """The mechanism and iterations of one credential."""

    mechanism: Annotated[int, int8, versions("0+"), about("1 for SCRAM-SHA-256, 2 for SCRAM-SHA-512.")] = 0
    iterations: Annotated[int, int32, versions("0+"), about("How often the password was hashed.")] = 0


class DescribeUserScramCredentialsResult(Struct):
    """One user's credentials."""

    user: Annotated[str, string, versions("0+"), about("The user.")] = ""
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("What went wrong, for people.")
    ] = ""
    credential_infos: Annotated[list[CredentialInfo], versions("0+"), about("One for each mechanism.")] = []


class DescribeUserScramCredentialsResponse(Message, api_key=50, kind="response", versions="0", flexible="0+"):
    """The mechanisms and iterations of each user's credentials."""

    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("What went wrong, for people.")
    ] = ""
    results: Annotated[list[DescribeUserScramCredentialsResult], versions("0+"), about("One for each user.")] = []
