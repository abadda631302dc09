"""Envelopes: a client's request with its principal, as a node forwards it to the controller (KIP-590).

Owns the encoding of an envelope and the decoding of its response. Must not know the sender or the request. The receiver
is `pybroker/handlers/envelope.py`.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING

from pybroker.controller.errors import ControllerError, UnservedByControllerError
from pybroker.protocol.codec import encode
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.header import RequestHeader
from pybroker.protocol.messages.default_principal_data import DefaultPrincipalData
from pybroker.protocol.messages.envelope import EnvelopeRequest

if TYPE_CHECKING:
    from pybroker.protocol.messages.envelope import EnvelopeResponse
    from pybroker.security.principals import Principal

_HEADER_VERSION = 1
"""Header version without tagged fields: those are a part of the message."""
_PRINCIPAL_VERSION = 0
_CORRELATION_ID_SIZE = 4


def build_envelope(
    header: RequestHeader, message: bytes, principal: Principal, client_host: str, *, by_token: bool = False
) -> EnvelopeRequest:
    """Return the envelope of a request; `message` begins with the tagged fields of a flexible header.

    `by_token`: the client authenticated by a delegation token.
    """
    data = DefaultPrincipalData(type=principal.kind, name=principal.name, token_authenticated=by_token)
    return EnvelopeRequest(
        request_data=encode(header, _HEADER_VERSION) + message,
        request_principal=_PRINCIPAL_VERSION.to_bytes(2, "big") + encode(data, _PRINCIPAL_VERSION),
        client_host_address=ip_address(client_host).packed,
    )


def open_response(header: RequestHeader, response: EnvelopeResponse) -> bytes:
    """Return the response to the request in an envelope, without its correlation id.

    Raises `UnservedByControllerError` if the controller does not support the request's version, and `ControllerError`
    for a response that no controller sends to an authorized broker.
    """
    what = f"API {header.request_api_key} version {header.request_api_version}"
    if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
        raise UnservedByControllerError(f"the active controller does not serve {what}")
    if response.error_code or response.response_data is None:
        raise ControllerError(f"the active controller rejected the envelope of {what}: error {response.error_code}")
    head = bytes(response.response_data[:_CORRELATION_ID_SIZE])
    if int.from_bytes(head, "big", signed=True) != header.correlation_id or len(head) < _CORRELATION_ID_SIZE:
        raise ControllerError(
            f"the active controller responded to {what} with correlation id {head.hex()}, not {header.correlation_id}"
        )
    return bytes(response.response_data[_CORRELATION_ID_SIZE:])
