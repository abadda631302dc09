"""What stands between a frame's size and a message: the request and response headers.

Owns the two header declarations and the rule by which an API version has tagged fields in its header. Knows no
message's fields and no socket. Rust has parsed a request's header up to the client id before Python sees the body;
here the rest of it is passed over, and the start of a response is made.
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
    """Precedes every request; version 2 where the API version is flexible."""

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
    """Make what follows the correlation id of a response: no tagged fields, where the version knows tagged fields.

    ApiVersions keeps response header 0 in all versions (KIP-511): a client that asks for it does not know yet what the
    broker speaks.
    """
    if api_key == ApiKey.API_VERSIONS or not response_class(api_key).__message__.is_flexible(version):
        return b""
    return b"\x00"


def skip_tagged(body: bytes | memoryview, offset: int = 0) -> int:
    """Pass over a section of tagged fields that starts at `offset`; answer where it ends.

    Raises `MalformedMessage` when the section is longer than `body` or has more than 10,000 fields.
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
    """Read an unsigned varint of at most 5 bytes at `offset`: (value, where it ends)."""
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
