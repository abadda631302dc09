"""Authentication of a connection over asyncio: SaslHandshake, then SaslAuthenticate (KIP-43, KIP-152).

Owns the order of the requests and the messages of failures. The mechanisms are native, shared with the native
engine's connections (`native/client/src/network/signing_in.rs`).
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Protocol, TypeVar

from pybroker.client.errors import AuthenticationError
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from pybroker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from pybroker.client import native
    from pybroker.protocol.schema import Message

Response = TypeVar("Response", bound="Message")

_RENEWED_FROM, _RENEWED_UNTIL = 0.85, 0.95
"""The share of a session's lifetime after which it is re-authenticated (KIP-368)."""


class SignInConnection(Protocol):
    """A connection, as far as authentication needs it."""

    server: str

    async def query(self, request: Message, response: type[Response]) -> Response:
        """Send a request, and return its response."""


async def sign_in(connection: SignInConnection, credentials: native.SaslCredentials) -> float | None:
    """Authenticate. Returns the seconds until the re-authentication, None for never. Raises AuthenticationError."""
    mechanism = credentials.mechanism
    refused = f"{connection.server}: authentication by {mechanism} failed"
    handshake = await connection.query(SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse)
    if handshake.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        enabled = ", ".join(handshake.mechanisms)
        raise AuthenticationError(
            f"{refused}: the listener has not enabled sasl.mechanism={mechanism}; it has {enabled}"
        )
    if handshake.error_code == ErrorCode.ILLEGAL_SASL_STATE:
        raise AuthenticationError(f"{refused}: the listener takes no SASL: security.protocol names the wrong one")
    if handshake.error_code:
        raise AuthenticationError(f"{refused}: {_words(handshake.error_code)}")
    try:
        # GSSAPI may query a Kerberos server: not on the loop.
        host = connection.server.rpartition(":")[0].strip("[]")
        exchange, token = await asyncio.to_thread(credentials.begin, host)
        while True:
            response = await connection.query(SaslAuthenticateRequest(auth_bytes=token), SaslAuthenticateResponse)
            if response.error_code:
                reported = f" ({exchange.failure})" if exchange.failure else ""
                raise AuthenticationError(f"{response.error_message or _words(response.error_code)}{reported}")
            # SCRAM computes for milliseconds: not on the loop.
            next_token = await asyncio.to_thread(exchange.step, response.auth_bytes)
            if next_token is None:
                break
            token = next_token
    except AuthenticationError as error:
        raise AuthenticationError(f"{refused}: {error}") from None
    lasts_s = response.session_lifetime_ms / 1000
    return lasts_s * random.uniform(_RENEWED_FROM, _RENEWED_UNTIL) if lasts_s > 0 else None


def _words(code: int) -> str:
    try:
        known = ErrorCode(code)
    except ValueError:
        return f"error code {code}, not known to this client"
    return f"{known.name}: {known.message}"
