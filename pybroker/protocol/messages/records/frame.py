"""The frame around a metadata record, with its type and version (Kafka's `MetadataRecordSerde`).

Owns the encoding: three unsigned varints (frame version 1, record type, version), then the body. Knows nothing of
batches. Every value in the metadata log has this frame.
"""

from __future__ import annotations

from pybroker.protocol.codec import decode, encode
from pybroker.protocol.errors import MalformedMessage, UnsupportedVersion
from pybroker.protocol.header import unsigned_varint
from pybroker.protocol.messages.records import record_class
from pybroker.protocol.schema import MAX_VERSION, Message

FRAME_VERSION = 1
_SHORT_HEAD = 3
_ONE_BYTE = 0x80
"""Varints below this value take one byte."""


def encode_record(record: Message, version: int) -> bytes:
    """Encode a record as the value of a metadata log record."""
    head = bytearray((FRAME_VERSION,))
    for number in (record.__message__.api_key, version):
        while number > 0x7F:
            head.append(number & 0x7F | 0x80)
            number >>= 7
        head.append(number)
    return bytes(head) + encode(record, version)


def decode_record(value: bytes | memoryview) -> Message:
    """Decode the value of a metadata log record. See `decode_versioned`."""
    return decode_versioned(value)[0]


def decode_versioned(value: bytes | memoryview) -> tuple[Message, int]:
    """Decode the value of a metadata log record. Returns the record and the version that it is written in.

    Raises `MalformedMessage`, also for bytes after the record, and `UnsupportedVersion` for a record type or version
    that is not declared.
    """
    head = value[:_SHORT_HEAD]
    if len(head) == _SHORT_HEAD and max(head) < _ONE_BYTE:
        # Fast path for nearly every record: a node that starts replays very many of them.
        frame_version, record_type, version = head
        offset = _SHORT_HEAD
    else:
        frame_version, record_type, version, offset = _long_head(value)
    if frame_version != FRAME_VERSION:
        raise MalformedMessage(
            f"Could not deserialize metadata record due to unknown frame version {frame_version}"
            f"(only frame version {FRAME_VERSION} is supported)"
        )
    try:
        cls = record_class(record_type)
    except KeyError:
        raise UnsupportedVersion(f"Unknown metadata id {record_type}") from None
    record, size = decode(cls, value, version, offset)
    if offset + size != len(value):
        raise MalformedMessage(f"Found {len(value) - offset - size} byte(s) of garbage after {record_type}")
    return record, version


def _long_head(value: bytes | memoryview) -> tuple[int, int, int, int]:
    """Return frame version, record type, version, and the offset of the body. Zeros for an unknown frame version."""
    frame_version, offset = _number(value, 0, "frame version")
    if frame_version != FRAME_VERSION:
        return frame_version, 0, 0, offset
    record_type, offset = _number(value, offset, "type")
    version, offset = _number(value, offset, "version")
    return frame_version, record_type, version, offset


def _number(value: bytes | memoryview, offset: int, what: str) -> tuple[int, int]:
    try:
        number, end = unsigned_varint(value, offset)
    except MalformedMessage:
        raise MalformedMessage(f"Error while reading {what}") from None
    if number > MAX_VERSION:
        raise MalformedMessage(f"Value for {what} was too large.")
    return number, end
