"""CreateDelegationToken (38): creates a token that authenticates as a user for a limited time."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, int16, int32, int64, nullable, octets, string, versions


class CreatableRenewers(Struct):
    """A principal that may renew the token."""

    principal_type: Annotated[str, string, versions("0+"), about("`User`.")] = ""
    principal_name: Annotated[str, string, versions("0+"), about("The name.")] = ""


class CreateDelegationTokenRequest(Message, api_key=38, kind="request", versions="1-3", flexible="2+"):
    """Requests a token (KIP-48)."""

    owner_principal_type: Annotated[
        str | None, string, versions("3+"), nullable("3+"), about("Type of whom the token is for (KIP-373).")
    ] = ""
    owner_principal_name: Annotated[
        str | None, string, versions("3+"), nullable("3+"), about("Whom the token is for; none for who asks.")
    ] = ""
    renewers: Annotated[list[CreatableRenewers], versions("0+"), about("Who may renew it, beside its owner.")] = []
    max_lifetime_ms: Annotated[int, int64, versions("0+"), about("Its longest life; -1 for the broker's.")] = 0


class CreateDelegationTokenResponse(Message, api_key=38, kind="response", versions="1-3", flexible="2+"):
    """The created token."""

    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    principal_type: Annotated[str, string, versions("0+"), about("Type of its owner.")] = ""
    principal_name: Annotated[str, string, versions("0+"), about("Its owner.")] = ""
    token_requester_principal_type: Annotated[str, string, versions("3+"), about("Type of who asked for it.")] = ""
    token_requester_principal_name: Annotated[str, string, versions("3+"), about("Who asked for it.")] = ""
    issue_timestamp_ms: Annotated[int, int64, versions("0+"), about("When it was made, ms since 1970.")] = 0
    expiry_timestamp_ms: Annotated[int, int64, versions("0+"), about("When it ends unless it is renewed.")] = 0
    max_timestamp_ms: Annotated[int, int64, versions("0+"), about("When it ends for good.")] = 0
    token_id: Annotated[str, string, versions("0+"), about("Its id: the name to log in by.")] = ""
    hmac: Annotated[bytes, octets, versions("0+"), about("What it proves itself by: in base64, the password.")] = b""
    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
