"""The request and response headers, between a frame's size and its message.

Owns the request header's declaration, and the rule which API versions have tagged fields in their headers. Must not
know the fields of messages. Rust parses a request's header up to the client id; this module skips its tagged fields,
and encodes the tagged fields of a response header.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated

from pybroker.protocol.api_keys import ApiKey
from pybroker.protocol.errors import MalformedMessage
from pybroker.protocol.messages import request_class, response_class
from pybroker.protocol.schema import Message, about, int16, int32, not_flexible, nullable, string, versions

MAX_TAGGED_FIELDS = 10_000


class RequestHeader(Message, kind="header", versions="1-2", flexible="2+"):
    """The header of a request: version 2 if the API version is flexible."""

    request_api_key: Annotated[int, int16, versions("0+"), about("The API asked for.")] = 0
    request_api_version: Annotated[int, int16, versions("0+"), about("The version of that API.")] = 0
    correlation_id: Annotated[int, int32, versions("0+"), about("Chosen by the client, returned with the answer.")] = 0
    client_id: Annotated[
        str | None,
        string,
        versions("1+"),
        nullable("1+"),
        not_flexible,
        about("The client's name for itself."),
    ] = ""


@cache
def flexible(api_key: int, version: int) -> bool:
    """Return whether requests of this version have tagged fields in header and body.

    Raises KeyError for an undeclared API.
    """
    return request_class(api_key).__message__.is_flexible(version)


@cache
def response_prefix(api_key: int, version: int) -> bytes:
    """Return the response header's bytes after the correlation id: zero tagged fields if flexible, else empty.

    ApiVersions has response header 0 in all versions (KIP-511): its client does not know the broker's versions yet.
    """
    if api_key == ApiKey.API_VERSIONS or not response_class(api_key).__message__.is_flexible(version):
        return b""
    return b"\x00"


def skip_tagged(body: bytes | memoryview, offset: int = 0) -> int:
    """Skip the tagged fields that start at `offset`, and return the offset after them.

    Raises `MalformedMessage` if they are longer than `body`, or more than 10,000.
    """
    count, offset = unsigned_varint(body, offset)
    if count > MAX_TAGGED_FIELDS:
        raise MalformedMessage(f"{count} tagged fields in the header, at most {MAX_TAGGED_FIELDS} are read")
    for _ in range(count):
        _, offset = unsigned_varint(body, offset)
        size, offset = unsigned_varint(body, offset)
        offset += size
        if offset > len(body):
            raise MalformedMessage(f"tagged field of {size} bytes reaches {offset - len(body)} bytes past the end")
    return offset


def unsigned_varint(body: bytes | memoryview, offset: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 5 bytes at `offset`. Return the value and the offset after it."""
    value = 0
    for shift in range(0, 35, 7):
        if offset >= len(body):
            raise MalformedMessage("the header ends inside its tagged fields")
        byte = body[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, offset
    raise MalformedMessage("a varint of more than 5 bytes in the header's tagged fields")
