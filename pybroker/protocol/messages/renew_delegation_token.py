"""RenewDelegationToken (39): extends the lifetime of a token."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import Message, about, int16, int32, int64, octets, versions


class RenewDelegationTokenRequest(Message, api_key=39, kind="request", versions="1-2", flexible="2+"):
    """Requests a later expiry of a token (KIP-48)."""

    hmac: Annotated[bytes, octets, versions("0+"), about("What the token proves itself by.")] = b""
    renew_period_ms: Annotated[int, int64, versions("0+"), about("From now; -1 for the broker's.")] = 0


class RenewDelegationTokenResponse(Message, api_key=39, kind="response", versions="1-2", flexible="2+"):
    """The new expiry timestamp of the token."""

    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    expiry_timestamp_ms: Annotated[int, int64, versions("0+"), about("When it ends, ms since 1970.")] = 0
    throttle_time_ms: Annotated[
        int, int32, versions("0+"), about("Milliseconds that the quota made the client wait.")
    ] = 0
