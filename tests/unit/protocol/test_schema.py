"""How a declaration is read."""

from __future__ import annotations

import subprocess
import sys
from typing import Annotated

import pytest

from pybroker.protocol.schema import (
    MAX_VERSION,
    Message,
    Struct,
    VersionRange,
    about,
    field,
    fields_of,
    ignorable,
    int32,
    map_key,
    nullable,
    string,
    tag,
    versions,
)


class Part(Struct):
    number: Annotated[int, int32, versions("0+"), map_key, about("Which part.")] = 7


class Whole(Message, api_key=99, kind="request", versions="1-4", flexible="3+"):
    name: Annotated[str | None, string, versions("0+"), nullable("2+"), ignorable] = None
    parts: Annotated[list[Part] | None, versions("1-2"), nullable("1-2")] = []  # noqa: RUF012
    one: Annotated[Part, versions("3+"), tag(5, "3+")] = field(default_factory=Part)


@pytest.mark.parametrize(
    ("text", "first", "last", "again"),
    [("3", 3, 3, "3"), ("1-4", 1, 4, "1-4"), ("2+", 2, MAX_VERSION, "2+"), ("none", 0, -1, "none"), ("0", 0, 0, "0")],
)
def test_a_version_range_is_read_in_kafkas_notation(text: str, first: int, last: int, again: str) -> None:
    parsed = VersionRange.parse(text)
    assert parsed.bounds == (first, last)
    assert str(parsed) == again
    assert (first in parsed) == (text != "none")
    assert last + 1 not in parsed


def test_the_class_line_says_api_kind_and_versions() -> None:
    spec = Whole.__message__
    assert (spec.api_key, spec.kind) == (99, "request")
    assert [spec.is_flexible(version) for version in range(1, 5)] == [False, False, True, True]


def test_fields_are_read_in_order_with_their_marks() -> None:
    name, parts, one = fields_of(Whole)
    assert (name.type, name.array, name.struct, name.ignorable) == ("string", False, None, True)
    assert (parts.type, parts.array, parts.struct, str(parts.nullable)) == ("[]Part", True, Part, "1-2")
    assert (one.type, one.tag, str(one.tagged), one.default) == ("Part", 5, "3+", Part(number=7))
    (number,) = fields_of(Part)
    assert (number.map_key, number.about, number.default) == (True, "Which part.", 7)


def test_defaults_are_fresh_for_each_instance() -> None:
    first, second = Whole(), Whole()
    assert first.parts is not None
    first.parts.append(Part())
    first.one.number = 1
    assert second == Whole(parts=[], one=Part(number=7))


class NotAnnotated(Struct):
    bare: int = 0


class WithoutVersions(Struct):
    bare: Annotated[int, int32] = 0


class WithoutType(Struct):
    bare: Annotated[int, versions("0+")] = 0


class WithTwoTypes(Struct):
    part: Annotated[Part, int32, versions("0+")] = field(default_factory=Part)


@pytest.mark.parametrize(
    ("cls", "text"),
    [
        (NotAnnotated, r"NotAnnotated\.bare: int is not Annotated"),
        (WithoutVersions, r"WithoutVersions\.bare: lacks versions"),
        (WithoutType, r"WithoutType\.bare: needs either one wire type or one Struct"),
        (WithTwoTypes, r"WithTwoTypes\.part: needs either one wire type or one Struct"),
    ],
)
def test_a_declaration_that_is_not_understood_names_class_and_field(cls: type[Struct], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        fields_of(cls)


def test_only_what_is_used_is_imported() -> None:
    """One API's messages load neither another's nor the records."""
    program = (
        "import sys; from pybroker.protocol.messages import request_class; request_class(3);"
        "print(*sorted(name for name in sys.modules if name.startswith('pybroker.protocol.messages.')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["pybroker.protocol.messages.metadata"]
