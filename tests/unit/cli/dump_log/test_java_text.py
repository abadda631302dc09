"""What Java made of the same bytes, as seen in Kafka's dump tool."""

from __future__ import annotations

import pytest

from pybroker.cli.dump_log.java_text import java_text

WRONG = "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"", ""),
        ("ünï €\U0001f600".encode(), "ünï €\U0001f600"),
        (b"a\xffb", f"a{WRONG}b"),
        (b"\xe2\x82", WRONG),
        (b"\xf5\x90\x80", WRONG * 3),
        (b"\xed\xa0\x80", WRONG),
        (b"\xed\xa0\x80\xc1\xc1", WRONG * 3),
        (b"\xed\xbf\xc0\x80\x9f\xf5", WRONG * 5),
        (b"\x80A\xed\xbf", f"{WRONG}A{WRONG}"),
        (b"\xf1\xed\xbf", WRONG * 2),
        (b"\xed\xbf\xe0", WRONG * 2),
        (b"\xed\x9f\xbf", "\ud7ff"),
    ],
)
def test_what_is_malformed_is_replaced_as_by_java(raw: bytes, shown: str) -> None:
    assert java_text(raw) == shown
