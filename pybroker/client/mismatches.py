"""Distinguishes a listener with another security protocol than the client's from a broker that restarts.

A listener without TLS closes the connection at a ClientHello, and a listener with SASL at the first request of a
client without SASL. A broker that stops closes connections too. Owns the probe that distinguishes them, a
SaslHandshake without a mechanism: a listener with SASL responds with its mechanisms, a listener without SASL with
ILLEGAL_SASL_STATE. The native engine has the same probe (`native/client/src/network/mismatches.rs`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pybroker.client.errors import AuthenticationError
from pybroker.client.network.retrying import time_left_ms
from pybroker.client.network.stream import Stream
from pybroker.protocol.codec import decode, encode
from pybroker.protocol.errors import ErrorCode, ProtocolError
from pybroker.protocol.header import RequestHeader
from pybroker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from pybroker.client.settings import ConnectionSettings

_SASL_HANDSHAKE, _VERSION, _HEADER_VERSION = 17, 1, 1
_CORRELATION_ID = 1
_LONGEST_RESPONSE = 64 * 1024


async def refuse_mismatch(server: str, settings: ConnectionSettings, *, without_tls: bool) -> None:
    """Probe a listener that has closed a connection. Returns where the response shows no mismatch, or none arrives.

    Args:
        without_tls: probe without TLS, because the listener has sent no byte of TLS.

    Raises:
        AuthenticationError: the listener has another security protocol; names the one to set.
    """
    timeout_s = time_left_ms(settings.socket_connection_setup_timeout_ms) / 1000
    try:
        async with asyncio.timeout(timeout_s):
            response = await _probe(server, settings, without_tls)
    except (OSError, EOFError, TimeoutError, ValueError, ProtocolError, AuthenticationError):
        return
    if response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        right = "SASL_PLAINTEXT" if without_tls or settings.tls is None else "SASL_SSL"
        if settings.credentials is None:
            right += f" and sasl.mechanism to one of {', '.join(response.mechanisms)}"
    elif response.error_code == ErrorCode.ILLEGAL_SASL_STATE and without_tls:
        right = "PLAINTEXT"
    else:
        return
    what = "does not speak TLS" if without_tls else "expects SASL"
    raise AuthenticationError(f"{server}: the listener {what}: set security.protocol={right}")


async def _probe(server: str, settings: ConnectionSettings, without_tls: bool) -> SaslHandshakeResponse:
    host, _, port = server.rpartition(":")
    stream = await Stream.open(host.strip("[]"), int(port), None if without_tls else settings.tls)
    try:
        header = RequestHeader(
            request_api_key=_SASL_HANDSHAKE,
            request_api_version=_VERSION,
            correlation_id=_CORRELATION_ID,
            client_id=settings.client_id,
        )
        frame = encode(header, _HEADER_VERSION) + encode(SaslHandshakeRequest(mechanism=""), _VERSION)
        stream.write(len(frame).to_bytes(4, "big") + frame)
        size = int.from_bytes(await stream.readexactly(4), "big", signed=True)
        if not 4 <= size <= _LONGEST_RESPONSE:
            raise ProtocolError(f"a response of {size} bytes")
        response = await stream.readexactly(size)
        if int.from_bytes(response[:4], "big") != _CORRELATION_ID:
            raise ProtocolError("the response belongs to another request")
        return decode(SaslHandshakeResponse, response, _VERSION, 4)[0]
    finally:
        stream.close()
