"""The frame around a metadata record: which record it is and in which version (Kafka's `MetadataRecordSerde`).

Owns three unsigned varints (frame version 1, record type, version) and the body after them. Knows nothing of batches.
Every value in the metadata log is such a frame.
"""

from __future__ import annotations

from pybroker.protocol.codec import decode, encode
from pybroker.protocol.errors import MalformedMessage, UnsupportedVersion
from pybroker.protocol.header import unsigned_varint
from pybroker.protocol.messages.records import record_class
from pybroker.protocol.schema import Message

FRAME_VERSION = 1


def encode_record(record: Message, version: int) -> bytes:
    """Make the value of a metadata log record."""
    head = bytearray((FRAME_VERSION,))
    for number in (record.__message__.api_key, version):
        while number > 0x7F:
            head.append(number & 0x7F | 0x80)
            number >>= 7
        head.append(number)
    return bytes(head) + encode(record, version)


def decode_record(value: bytes | memoryview) -> Message:
    """Read the value of a metadata log record.

    Raises `MalformedMessage`, also for bytes left over, and `UnsupportedVersion` for a record type or version that is
    not declared.
    """
    frame_version, offset = unsigned_varint(value, 0)
    if frame_version != FRAME_VERSION:
        raise MalformedMessage(f"metadata record in frame version {frame_version}, only {FRAME_VERSION} is known")
    record_type, offset = unsigned_varint(value, offset)
    version, offset = unsigned_varint(value, offset)
    try:
        cls = record_class(record_type)
    except KeyError:
        raise UnsupportedVersion(f"metadata record type {record_type} is not declared") from None
    record, size = decode(cls, value, version, offset)
    if offset + size != len(value):
        raise MalformedMessage(f"{len(value) - offset - size} bytes follow the {cls.__name__}")
    return record
