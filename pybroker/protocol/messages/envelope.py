"""Envelope (58): forwards a client's request from a broker to the controller, and returns its response."""

from __future__ import annotations

from typing import Annotated

from pybroker.protocol.schema import (
    Message,
    about,
    int16,
    int64,
    nullable,
    octets,
    tag,
    versions,
)

COMMITTED_OFFSET_TAG = 10_000
"""Far above the tags that Kafka assigns in sequence, so that later Kafka versions do not assign it to another field."""


class EnvelopeRequest(Message, api_key=58, kind="request", versions="0", flexible="0+"):
    """Forwards a request with the principal of its client (KIP-590)."""

    request_data: Annotated[bytes, octets, versions("0+"), about("The client's request: header and body.")] = b""
    request_principal: Annotated[
        bytes | None, octets, versions("0+"), nullable("0+"), about("Who the client is, in the form of its broker.")
    ] = b""
    client_host_address: Annotated[bytes, octets, versions("0+"), about("The client's address, 4 or 16 bytes.")] = b""


class EnvelopeResponse(Message, api_key=58, kind="response", versions="0", flexible="0+"):
    """The response to the client's request, or an error."""

    response_data: Annotated[
        bytes | None, octets, versions("0+"), nullable("0+"), about("The answer: header and body.")
    ] = None
    error_code: Annotated[int, int16, versions("0+"), about("An `ErrorCode`; 0 where nothing went wrong.")] = 0
    committed_offset: Annotated[
        int,
        int64,
        versions("0+"),
        tag(COMMITTED_OFFSET_TAG, "0+"),
        about("Up to where the metadata was committed when the request was answered; -1: not said. Not Kafka's."),
    ] = -1
