"""Ids in text; the words are those that Java 17 (`Uuid.fromString`) reports for these texts."""

from __future__ import annotations

import re

import pytest

from pybroker.cli.uuids import parse_uuid

ID = bytes(range(0xF0, 0x100))


@pytest.mark.parametrize("text", ["8PHy8_T19vf4-fr7_P3-_w", "8PHy8_T19vf4-fr7_P3-_w==", "8PHy8_T19vf4-fr7_P3-_x"])
def test_an_id_is_read_with_padding_or_without_and_stray_bits_are_lost(text: str) -> None:
    assert parse_uuid(text) == ID


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "",
            "Input string `` decoded as 0 bytes, which is not equal to the expected 16 bytes of a base64-encoded UUID",
        ),
        ("zz", "Input string `zz` decoded as 1 bytes, which"),
        ("AAAAAA==", "Input string `AAAAAA==` decoded as 4 bytes, which"),
        ("A" * 23, f"Input string `{'A' * 23}` decoded as 17 bytes, which"),
        ("A" * 25, f"Input string with prefix `{'A' * 24}` is too long to be decoded as a base64 UUID"),
        ("z", "Input byte[] should at least have 2 bytes for base64 bytes"),
        ("AAAAA", "Last unit does not have enough valid bits"),
        ("AAAAA=", "Last unit does not have enough valid bits"),
        ("AAAA=", "Input byte array has wrong 4-byte ending unit"),
        ("AA=A", "Input byte array has wrong 4-byte ending unit"),
        ("AA==A", "Input byte array has incorrect ending byte at 4"),
        ("AAA==", "Input byte array has incorrect ending byte at 4"),
        ("AA+A", "Illegal base64 character 2b"),
        ("a\N{LATIN SMALL LETTER E WITH ACUTE}", "Illegal base64 character -17"),
        ("a\N{SNOWMAN}", "Illegal base64 character 3f"),
    ],
)
def test_what_is_no_id_is_refused_in_javas_words(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=rf"^{re.escape(words)}"):
        parse_uuid(text)
