"""Absurd lengths are refused before memory is taken for them."""

from __future__ import annotations

import contextlib
import resource

import pytest

from pybroker.protocol.codec import decode, encode
from pybroker.protocol.errors import MalformedMessage
from pybroker.protocol.messages.metadata import MetadataRequest
from pybroker.protocol.schema import Message
from tests.support.declarations import in_every_version

ABSURD = [
    b"\x7f\xff\xff\xff",
    b"\x00\x0f\x42\x41",  # 1,000,001
    b"\xff\xff\xff\xff\x07",
    b"\xff\xff\xff\xff\x0f",
    b"\x80\x80\x80\x80\x08",
    b"\x80\x00\x00\x00",
]
MIB = 1024  # `ru_maxrss` counts KiB


@pytest.mark.parametrize(("cls", "version"), in_every_version())
def test_no_length_takes_memory_that_no_byte_stands_for(cls: type[Message], version: int) -> None:
    encoded = encode(cls(), version)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for start in range(len(encoded) + 1):
        for length in ABSURD:
            with contextlib.suppress(MalformedMessage):
                _, size = decode(cls, encoded[:start] + length * 3, version)
                assert size <= start + 3 * len(length)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * MIB


def test_an_array_of_more_than_a_million_elements_is_refused_though_its_bytes_are_there() -> None:
    most = decode(MetadataRequest, b"\x00\x0f\x42\x40" + bytes(2_000_000), 0)
    assert len(most[0].topics or ()) == 1_000_000
    with pytest.raises(MalformedMessage, match=r"topics: an array of 1000001 elements at byte 0"):
        decode(MetadataRequest, b"\x00\x0f\x42\x41" + bytes(2_000_002), 0)


def test_more_than_ten_thousand_tagged_fields_are_refused_though_their_bytes_are_there() -> None:
    request = b"\x01\x00\x00\x00"  # no topics, three booleans of version 9, then the tagged section
    section = bytes([40, 0]) * 10_000
    assert decode(MetadataRequest, request + b"\x90\x4e" + section, 9)[1] == len(request) + 2 + len(section)
    with pytest.raises(MalformedMessage, match="an array of 10001 elements"):
        decode(MetadataRequest, request + b"\x91\x4e" + section + bytes([40, 0]), 9)
