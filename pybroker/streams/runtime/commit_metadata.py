"""The metadata of a committed offset: the partition time, and numbers of processors (`TopicPartitionMetadata`)."""

from __future__ import annotations

import base64
import binascii
import logging
import struct
from collections.abc import Mapping
from typing import NamedTuple

log = logging.getLogger("pybroker.streams")

WITH_TIME, WITH_NUMBERS = 1, 2
"""Versions: with the partition time only, and with the numbers of processors too."""
_HEAD = struct.Struct(">bq")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")


class CommitMetadata(NamedTuple):
    """The time and the numbers with which a task continues after a restart."""

    partition_time: int = -1
    """The largest timestamp that was taken from the partition, in milliseconds; -1 before the first."""
    numbers: Mapping[str, int] = {}
    """Numbers that processors have stored, by key."""


def encode(metadata: CommitMetadata) -> str:
    """Return the text that is committed with an offset, in Kafka's format."""
    encoded = [_HEAD.pack(WITH_NUMBERS, metadata.partition_time)]
    if metadata.numbers:
        encoded.append(_INT.pack(len(metadata.numbers)))
        for key, number in metadata.numbers.items():
            name = key.encode()
            encoded += [_INT.pack(len(name)), name, _LONG.pack(number)]
    return base64.b64encode(b"".join(encoded)).decode()


def decode(text: str) -> CommitMetadata:
    """Return the metadata of a committed offset. Text of another program or version is logged and ignored."""
    if not text:
        return CommitMetadata()
    try:
        encoded = base64.b64decode(text, validate=True)
        version, time = _HEAD.unpack_from(encoded)
        if version not in (WITH_TIME, WITH_NUMBERS):
            raise ValueError(f"version {version}: expected at most {WITH_NUMBERS}")
        numbers = _numbers(encoded[_HEAD.size :]) if version == WITH_NUMBERS else {}
    except (ValueError, struct.error, binascii.Error) as error:
        log.warning("Ignoring metadata %.100r of a committed offset: %s", text, error)
        return CommitMetadata()
    return CommitMetadata(time, numbers)


def _numbers(encoded: bytes) -> dict[str, int]:
    if not encoded:
        return {}
    numbers: dict[str, int] = {}
    count, at = _INT.unpack_from(encoded)[0], _INT.size
    for _ in range(count):
        end = at + _INT.size + _INT.unpack_from(encoded, at)[0]
        name = encoded[at + _INT.size : end]
        numbers[name.decode()] = _LONG.unpack_from(encoded, end)[0]
        at = end + _LONG.size
    return numbers
