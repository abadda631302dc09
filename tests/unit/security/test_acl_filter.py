"""Which entries a filter matches (KIP-290)."""

from __future__ import annotations

import pytest

from pybroker.metadata.image import AccessControlEntry
from pybroker.security.acl_filter import Filter

LITERAL, PREFIXED, MATCH, ANY = 3, 4, 2, 1


def entry(name: str, pattern: int) -> AccessControlEntry:
    return AccessControlEntry(2, name, pattern, "User:a", "*", 3, 3)


@pytest.mark.parametrize(
    ("name", "pattern", "matched"),
    [
        ("ab", LITERAL, ["ab"]),
        ("ab", ANY, ["ab"]),
        ("a", PREFIXED, ["a*"]),
        ("ab", MATCH, ["ab", "a*", "*"]),
        ("b", MATCH, ["*"]),
        (None, ANY, ["ab", "a*", "*"]),
    ],
)
def test_a_name_stands_for_entries_by_its_pattern(name: str | None, pattern: int, matched: list[str]) -> None:
    entries = {"ab": entry("ab", LITERAL), "a*": entry("a", PREFIXED), "*": entry("*", LITERAL)}
    wanted = Filter(2, name, pattern, None, None, ANY, ANY)
    assert [label for label, one in entries.items() if wanted.matches(one)] == matched


def test_a_number_that_nobody_knows_is_a_fault() -> None:
    assert Filter(99, None, ANY, None, None, ANY, ANY).fault() == "Unknown patternFilter."
    assert Filter(2, None, ANY, None, None, 99, ANY).fault() == "Unknown entryFilter."
    assert Filter(2, None, ANY, None, None, ANY, ANY).fault() is None
