"""Numbers in Rust signatures (style 20): two that could be taken for each other are never bare integers of one type.

Times and durations may stand side by side: their names say their unit. Bindings convert, and tests know their own
numbers; both are left out.
"""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.support import repository

TIMED = re.compile(r"(?:_ms|_time|^timestamp|_timestamp|^timestamp_\w+)$")
IDENTITY = re.compile(r"(?:^|_)(?:index|partition|epoch|leader|broker|node|replica)(?:_id)?$")
FUNCTION = re.compile(r"\bfn (?P<name>\w+)(?:<[^(]*>)?\(")
STRUCT = re.compile(r"\bstruct (?P<name>\w+)(?:<[^{(;]*>)? ?(?=[{(])")
FIELD = re.compile(r"(?:pub(?:\(\w+\))? )?(?:mut )?(?P<name>\w+): (?P<type>.+)", re.S)
#: A tuple or a closure's parameters that have the same bare integer twice in a row.
PAIR = re.compile(r"\(i(?P<bits>32|64), i(?P=bits)\b")


def code(source: str) -> str:
    """The source without comments, texts, attributes and its unit tests."""
    source = re.split(r"#\[cfg\(test\)\]\n(?:pub\(crate\) )?mod tests \{", source)[0]
    source = re.sub(r"(?<!:)//[^\n]*", "", source)
    return re.sub(r'"(?:\\.|[^"\\])*"|#\[[^\]]*\]', "", source)


def members(source: str, start: int) -> list[str]:
    """What is between the bracket at `start` and its partner, split at the commas that are in no bracket of it."""
    depth, begin, found = 0, start + 1, []
    for at, sign in enumerate(source[start:], start):
        if sign in "([{<":
            depth += 1
        elif sign in ")]}" or (sign == ">" and source[at - 1] not in "-="):
            depth -= 1
        if depth == 0 or (sign == "," and depth == 1):
            found.append(source[begin:at].strip())
            begin = at + 1
        if depth == 0:
            break
    return [member for member in found if member]


def bare(source: str, start: int) -> list[tuple[str, str]]:
    """Name and type of the parameters or fields that are bare integers of offsets and ids."""
    fields = [FIELD.fullmatch(member) for member in members(source, start)]
    return [(field["name"], field["type"]) for field in fields if field and field["type"] in {"i32", "i64"}]


def swappable_parameters(source: str) -> list[str]:
    """Functions with two parameters of one bare integer type, of which one at least is no time."""
    found = []
    for function in FUNCTION.finditer(source):
        numbers = bare(source, function.end() - 1)
        counted = Counter(kind for _name, kind in numbers)
        timeless = {kind for name, kind in numbers if not TIMED.search(name)}
        found += [f"{function['name']}: two of {kind}" for kind in sorted(timeless) if counted[kind] > 1]
    return found


def swappable_fields(source: str) -> list[str]:
    """Structs with two bare ids or epochs, or with fields that have no names and one bare integer type."""
    found = []
    for struct in STRUCT.finditer(source):
        names = [name for name, kind in bare(source, struct.end()) if kind == "i32" and IDENTITY.search(name)]
        if len(names) > 1:
            found.append(f"{struct['name']}: {', '.join(names)}")
        nameless = Counter(re.sub(r"^pub(\(\w+\))? ", "", member) for member in members(source, struct.end()))
        found += [f"{struct['name']}: two of {kind}" for kind in ("i32", "i64") if nameless[kind] > 1]
    return found


def is_source(path: str) -> bool:
    return not path.endswith(("tests.rs", "_fixture.rs"))


def swappable(path: str) -> list[str]:
    """The parameters, fields and pairs of a file whose numbers could be swapped."""
    source = code(repository.text(path))
    found = swappable_parameters(source) + swappable_fields(source) + [match[0] for match in PAIR.finditer(source)]
    return [f"{path}: {each}" for each in found]


def test_numbers_that_could_be_swapped_have_types() -> None:
    found = [each for path in repository.rust_sources() if is_source(path) for each in swappable(path)]
    assert found == [], "give them types: Offset, PartitionIndex, BrokerId, LeaderEpoch, or a Range or struct of them"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("fn read(offset: i64, max: usize, end: i64) -> u64 {", ["read: two of i64"]),
        ("fn truncate(&self, offset: i64, now_ms: i64) {", ["truncate: two of i64"]),
        ("fn expire<T: Fn(i64) -> u8>(&mut self, now_ms: i64, expiration_ms: i64) {", []),
        ("fn truncate(&self, offset: Offset, epoch: i32, now_ms: i64) {", []),
        ("fn each(from: i64, mut each: impl Fn(i64, &[u8]) -> bool, to: i64) {", ["each: two of i64"]),
        ("pub struct Slot { pub leader: i32, pub(crate) leader_epoch: i32 }", ["Slot: leader, leader_epoch"]),
        ("struct Place { index: i32, count: i32, leader_epoch: LeaderEpoch }", []),
        ("struct Ends(pub i64, i64);", ["Ends: two of i64"]),
    ],
)
def test_the_search_finds_what_could_be_swapped(source: str, found: list[str]) -> None:
    assert swappable_parameters(source) + swappable_fields(source) == found
