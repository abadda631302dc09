"""Headers around messages."""

from __future__ import annotations

import pytest

from pybroker.protocol.codec import decode, encode
from pybroker.protocol.errors import MalformedMessage
from pybroker.protocol.header import RequestHeader, flexible, response_prefix, skip_tagged


def test_the_client_id_keeps_its_old_length_in_flexible_headers() -> None:
    header = RequestHeader(request_api_key=18, request_api_version=3, correlation_id=7, client_id="me")
    assert encode(header, 2) == bytes.fromhex("0012 0003 00000007 0002") + b"me\x00"
    assert encode(header, 1) == bytes.fromhex("0012 0003 00000007 0002") + b"me"
    assert decode(RequestHeader, encode(header, 2), 2)[0] == header


@pytest.mark.parametrize(("version", "expected"), [(8, False), (9, True), (13, True)])
def test_an_api_version_is_flexible_as_declared(version: int, expected: bool) -> None:
    assert flexible(3, version) is expected
    assert response_prefix(3, version) == (b"\x00" if expected else b"")


def test_the_response_header_of_api_versions_has_never_tagged_fields() -> None:
    assert flexible(18, 3)
    assert response_prefix(18, 3) == b""


def test_tagged_fields_are_passed_over() -> None:
    assert skip_tagged(b"\x00rest") == 1
    assert skip_tagged(b"xx\x02\x00\x01a\x81\x01\x02bcrest", 2) == 11
    assert skip_tagged(memoryview(b"\x01\x05\x00")) == 3


@pytest.mark.parametrize(
    ("section", "text"),
    [
        (b"", "ends inside"),
        (b"\x01", "ends inside"),
        (b"\x01\x00\x05abc", "tagged field of 5 bytes reaches 2 bytes past the end"),
        (b"\x91\x4e", "10001 tagged fields"),
        (b"\xff\xff\xff\xff\xff\x01", "more than 5 bytes"),
    ],
)
def test_a_bad_section_is_malformed(section: bytes, text: str) -> None:
    with pytest.raises(MalformedMessage, match=text):
        skip_tagged(section)
