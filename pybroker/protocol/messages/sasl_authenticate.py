"""SaslAuthenticate (36): one token of a SASL exchange in each direction."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, ignorable, int16, int64, nullable, octets, string, versions


class SaslAuthenticateRequest(Message, api_key=36, kind="request", versions="0-2", flexible="2+"):
    """Carries the client's token (KIP-152)."""

    auth_bytes: Annotated[bytes, octets, versions("0+"), about("What the mechanism has the client say.")] = b""


class SaslAuthenticateResponse(Message, api_key=36, kind="response", versions="0-2", flexible="2+"):
    """Carries the broker's token, or an authentication error."""

    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    error_message: Annotated[
        str | None, string, versions("0+"), nullable("0+"), about("What went wrong, for people.")
    ] = ""
    auth_bytes: Annotated[bytes, octets, versions("0+"), about("What the mechanism has the broker say.")] = b""
    session_lifetime_ms: Annotated[
        int,
        int64,
        versions("1+"),
        ignorable,
        about("Milliseconds after which the client has to authenticate again; 0 for never (KIP-368)."),
    ] = 0
