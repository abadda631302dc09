"""Envelope: a client request that a broker forwards to the controller (KIP-590).

Key
    58

Versions
    0-0

Behaviour
    - The request is handled in its own version with the envelope's principal. Its response has the client's correlation
      id. A principal without type and name means the broker itself (docs/adr/0063-nodes-are-clients-of-each-other.md).
    - INVALID_REQUEST for an API that is not forwarded, such as Envelope, for an invalid header, message or address, and
      for more elements than socket.request.max.elements.
    - UNSUPPORTED_VERSION for a version that is not served here, PRINCIPAL_DESERIALIZATION_FAILURE for a principal that
      cannot be decoded.
    - NOT_CONTROLLER from a node that is not the active controller; the broker then finds the active one.
    - The response has the committed metadata offset in a tagged field, which Kafka's nodes ignore. The forwarding
      broker responds to its client when it has applied that offset (docs/adr/0042-forwarding-waits-for-the-image.md).
    - Served on controller listeners.

Version notes
    - None.

Not done
    - None.
"""

from __future__ import annotations

import asyncio
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple

from pybroker.controller.errors import NotControllerError
from pybroker.handlers.context import ControllerContext
from pybroker.handlers.errors import ApiError
from pybroker.handlers.registry import handles, registered_apis
from pybroker.protocol.codec import decode, schema_of
from pybroker.protocol.errors import ErrorCode, ProtocolError
from pybroker.protocol.header import RequestHeader, flexible, response_prefix, skip_tagged
from pybroker.protocol.listener_role import ListenerRole
from pybroker.protocol.messages import response_class
from pybroker.protocol.messages.default_principal_data import DefaultPrincipalData
from pybroker.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from pybroker.security.operations import Operation, ResourceType
from pybroker.security.principals import SENDER, Principal
from pybroker.security.requirements import of_request

if TYPE_CHECKING:
    from pybroker.handlers.errors import WireError
    from pybroker.handlers.registry import RegisteredApi

_HEADER_VERSION = 1
"""The version of the header without tagged fields, which only some versions of an API have."""
_PRINCIPAL_VERSION = 0
_LARGE = 64 * 1024
"""Messages larger than this number of bytes are decoded outside the loop."""
_LARGE_RESPONSE = 256 * 1024
"""Responses larger than this number of bytes are encoded outside the loop."""


class Forwarded(NamedTuple):
    """The origin of a forwarded request: its client, on the connection of the forwarding broker."""

    connection: int
    api_key: int
    api_version: int
    client_id: str | None
    listener: str
    local_host: str
    local_port: int
    peer_host: str
    principal: Principal
    peer_port: int = 0
    software: tuple[str, str] | None = None


def _failed(_request: EnvelopeRequest, _version: int, error: WireError) -> EnvelopeResponse:
    return EnvelopeResponse(error_code=error.code)


@handles(
    EnvelopeRequest,
    requires=[of_request(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)],
    failed=_failed,
    listeners=ListenerRole.CONTROLLER,
)
async def envelope(request: EnvelopeRequest, context: ControllerContext) -> EnvelopeResponse:
    """Handle the enclosed request. Raises ApiError for an invalid envelope."""
    principal, by_token = _principal(request.request_principal)
    if principal == SENDER:
        principal = context.principal
    host = _host(request.client_host_address)
    header, offset = _header(request.request_data)
    api = _api(header)
    origin = Forwarded(
        context.origin.connection,
        header.request_api_key,
        header.request_api_version,
        header.client_id,
        context.listener,
        context.origin.local_host,
        context.origin.local_port,
        host,
        principal,
    )
    inner = ControllerContext(context.services, origin, context.image, header.request_api_version, principal, by_token)
    message = await _message(request.request_data, api, offset, inner)
    try:
        outcome = api.handle(message, inner)
        if not isinstance(outcome, bytes) and hasattr(outcome, "__await__"):
            outcome = await outcome
    except NotControllerError:
        raise
    except Exception as error:  # noqa: BLE001  # every exception of a handler becomes an error response
        outcome = api.failed(message, inner, error)
    payload = outcome if isinstance(outcome, bytes) else await _encoded(outcome, header)
    return EnvelopeResponse(
        response_data=header.correlation_id.to_bytes(4, "big", signed=True) + payload,
        committed_offset=context.services.image().offset,
    )


def _principal(data: bytes | None) -> tuple[Principal, bool]:
    """Return the client's principal, and whether it authenticated by a delegation token."""
    try:
        if data is None or int.from_bytes(data[:2], "big") != _PRINCIPAL_VERSION:
            raise ApiError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, "The principal is of no known version")
        principal, _ = decode(DefaultPrincipalData, data, _PRINCIPAL_VERSION, 2)
    except ProtocolError as error:
        raise ApiError(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE, str(error)) from None
    return Principal(principal.type, principal.name), principal.token_authenticated


def _host(address: bytes) -> str:
    try:
        return str(ip_address(address))
    except ValueError:
        raise _invalid(f"A client's address has 4 or 16 bytes, this one {len(address)}") from None


def _header(data: bytes) -> tuple[RequestHeader, int]:
    try:
        return decode(RequestHeader, data, _HEADER_VERSION)
    except ProtocolError as error:
        raise _invalid(f"The header of the forwarded request: {error}") from None


def _api(header: RequestHeader) -> RegisteredApi:
    api = registered_apis(ListenerRole.CONTROLLER).get(header.request_api_key)
    if api is None or not api.forwarded:
        raise _invalid(f"API key {header.request_api_key} is not enabled or is not eligible for forwarding")
    version = header.request_api_version
    if not api.min_version <= version <= api.max_version:
        words = f"{api.name} version {version}: expected {api.min_version} to {api.max_version}"
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, words)
    return api


async def _message(data: bytes, api: RegisteredApi, offset: int, context: ControllerContext) -> Any:
    schema, most = schema_of(api.request_type), context.services.config.socket_request_max_elements
    try:
        if flexible(api.key, context.version):
            offset = skip_tagged(data, offset)
        if len(data) > _LARGE:
            message, _ = await asyncio.to_thread(schema.decode, data, context.version, offset, most)
        else:
            message, _ = schema.decode(data, context.version, offset, most)
    except ProtocolError as error:
        raise _invalid(f"The forwarded request: {error}") from None
    return message


async def _encoded(response: Any, header: RequestHeader) -> bytes:
    """Return the bytes after the correlation id."""
    key, version = header.request_api_key, header.request_api_version
    schema = schema_of(response_class(key))
    encoded = schema.encode_within(response, version, _LARGE_RESPONSE)
    if encoded is None:
        encoded = await asyncio.to_thread(schema.encode, response, version)
    return response_prefix(key, version) + encoded


def _invalid(words: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, words)
