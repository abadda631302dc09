"""DescribeDelegationToken (41): lists the tokens that the client may describe."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, Struct, about, int16, int32, int64, nullable, octets, string, versions


class DescribeDelegationTokenOwner(Struct):
    """An owner whose tokens are requested."""

    principal_type: Annotated[str, string, versions("0+"), about("`User`.")] = ""
    principal_name: Annotated[str, string, versions("0+"), about("The name.")] = ""


class DescribeDelegationTokenRequest(Message, api_key=41, kind="request", versions="1-3", flexible="2+"):
    """Requests the tokens of owners (KIP-48)."""

    owners: Annotated[
        list[DescribeDelegationTokenOwner] | None,
        versions("0+"),
        nullable("0+"),
        about("Whose tokens are meant; null for all that the client may know."),
    ] = []


class DescribedDelegationTokenRenewer(Struct):
    """A principal that may renew the token."""

    principal_type: Annotated[str, string, versions("0+"), about("`User`.")] = ""
    principal_name: Annotated[str, string, versions("0+"), about("The name.")] = ""


class DescribedDelegationToken(Struct):
    """A delegation token."""

    principal_type: Annotated[str, string, versions("0+"), about("Type of its owner.")] = ""
    principal_name: Annotated[str, string, versions("0+"), about("Its owner.")] = ""
    token_requester_principal_type: Annotated[str, string, versions("3+"), about("Type of who asked for it.")] = ""
    token_requester_principal_name: Annotated[str, string, versions("3+"), about("Who asked for it.")] = ""
    issue_timestamp: Annotated[int, int64, versions("0+"), about("When it was made, ms since 1970.")] = 0
    expiry_timestamp: Annotated[int, int64, versions("0+"), about("When it ends unless it is renewed.")] = 0
    max_timestamp: Annotated[int, int64, versions("0+"), about("When it ends for good.")] = 0
    token_id: Annotated[str, string, versions("0+"), about("Its id.")] = ""
    hmac: Annotated[bytes, octets, versions("0+"), about("What it proves itself by.")] = b""
    renewers: Annotated[list[DescribedDelegationTokenRenewer], versions("0+"), about("Who may renew it.")] = []


class DescribeDelegationTokenResponse(Message, api_key=41, kind="response", versions="1-3", flexible="2+"):
    """The tokens."""

    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    tokens: Annotated[list[DescribedDelegationToken], versions("0+"), about("The tokens.")] = []
    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
