from __future__ import annotations

import re
from pathlib import Path

import pytest

from pybroker.config.errors import PropertiesError
from pybroker.config.properties import parse_overrides, parse_properties, read_properties


def test_comments_blanks_separators_and_continuations_are_javas() -> None:
    text = "\n".join(
        [
            "# a comment",
            "! another",
            "",
            "  node.id = 3",
            "log.dirs:/a,\\",
            "    /b",
            "broker.rack eu-west",
            "empty=",
            "alone",
        ]
    )
    assert parse_properties(text) == {
        "node.id": "3",
        "log.dirs": "/a,/b",
        "broker.rack": "eu-west",
        "empty": "",
        "alone": "",
    }


def test_escapes_are_javas() -> None:
    assert parse_properties(r"a\=b=tab\tuni\u00e9 back\\slash") == {"a=b": "tab\tunié back\\slash"}


def test_the_last_of_a_repeated_key_wins() -> None:
    assert parse_properties("a=1\na=2") == {"a": "2"}


def test_a_pair_of_surrogates_is_one_character() -> None:
    assert parse_properties(r"a=\ud83d\ude00!") == {"a": "\U0001f600!"}


@pytest.mark.parametrize(
    ("escape", "words"),
    [
        (r"\uZZZZ", r"\uZZZZ: expected four hexadecimal digits"),
        (r"\ud83d!", r"\ud83d: expected a pair of surrogates"),
        (r"!\ude00", r"\ude00: expected a pair of surrogates"),
        (r"\ud83d", r"\ud83d: expected a pair of surrogates"),
    ],
)
def test_a_broken_unicode_escape_is_reported_with_the_file(tmp_path: Path, escape: str, words: str) -> None:
    path = tmp_path / "server.properties"
    path.write_text(f"a={escape}")
    with pytest.raises(PropertiesError, match=f"^{re.escape(words)}$"):
        parse_properties(path.read_text())
    with pytest.raises(PropertiesError, match=f"^{re.escape(f'cannot read {path}: {words}')}$"):
        read_properties(path)


def test_an_override_without_a_sign_is_reported() -> None:
    with pytest.raises(PropertiesError, match=r"--override node\.id: expected key=value"):
        parse_overrides(["node.id"])


def test_an_override_may_hold_the_sign_in_its_value() -> None:
    assert parse_overrides(["listeners=A://:1", "x=y=z"]) == {"listeners": "A://:1", "x": "y=z"}


def test_a_file_that_is_not_there_is_reported_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(PropertiesError, match=r"cannot read .*nothing\.properties: No such file or directory"):
        read_properties(tmp_path / "nothing.properties")
