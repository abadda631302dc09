"""Who may use whom in the native core, by its `use` lines and paths (docs/adr/0032-layers-of-the-native-core.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.support import repository

CORE = "native/core/src/"
#: Every room, and the rooms that it may use.
MAY_USE = {
    "sys": set[str](),
    "record": set[str](),
    "wire": {"record"},
    "storage": {"record", "sys"},
    "quorum": {"record", "storage", "sys"},
    "replica": {"record", "wire", "storage", "sys"},
    "net": {"record", "wire", "storage", "replica", "sys"},
    "client": {"record", "wire"},
}
COMMENT = re.compile(r"//.*")
USED = re.compile(r"\bcrate::(\w+)")


def product_files() -> Iterator[tuple[str, str]]:
    """Every room's files without tests: the room's name and the path."""
    for path in repository.files_under("native/core/src", suffix=".rs"):
        room, _, rest = path.removeprefix(CORE).partition("/")
        if rest and not path.endswith("tests.rs"):
            yield room, path


def code_of(path: str) -> str:
    """A file's text without comments and without the tests at its end."""
    return COMMENT.sub("", repository.text(path).split("#[cfg(test)]\nmod tests {")[0])


def test_every_room_has_its_rule() -> None:
    assert {room for room, _ in product_files()} == MAY_USE.keys()


def test_a_room_uses_only_rooms_below_it() -> None:
    wrong = [
        f"{path}: crate::{used}"
        for room, path in product_files()
        for used in USED.findall(code_of(path))
        if used != room and used in MAY_USE and used not in MAY_USE[room]
    ]
    assert wrong == []


def test_the_rules_have_no_circle() -> None:
    left = {room: set(used) for room, used in MAY_USE.items()}
    while free := {room for room, used in left.items() if not used}:
        left = {room: used - free for room, used in left.items() if room not in free}
    assert left == {}
