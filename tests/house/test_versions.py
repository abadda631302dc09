"""A version that changes something has a name that says what (CONTRIBUTING.md, Words)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.support import repository

ROOMS = ("pybroker/handlers", "pybroker/client", "pybroker/coordinator", "pybroker/testing")
NAME = re.compile(r"_?(FIRST|LAST)_([A-Z]+_)?VERSION")
INSTEAD = "compare with a constant FIRST_VERSION_WITH_ or LAST_VERSION_WITH_ and what begins or ends there"


def is_version(node: ast.expr) -> bool:
    """Whether an expression is a version by its name: `version`, `event.version`, `api_version`, `version_of(...)`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute | ast.Name) and name_of(node.func) == "version_of"
    return re.fullmatch(r"(.*_)?version", name_of(node)) is not None


def name_of(node: ast.expr) -> str:
    """The last name of an expression, empty where it has none."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def constants_compared(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of each number or constant that a version is compared with, under a name that does not say so."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and name_of(node.func) in {"min", "max"}:
            sides = node.args
        else:
            continue
        if any(map(is_version, sides)):
            yield from ((node.lineno, ast.unparse(side)) for side in sides if is_unnamed(side))


def is_unnamed(side: ast.expr) -> bool:
    """Whether a side is a number (also in a tuple), or a constant whose name does not say that it is a version."""
    if isinstance(side, ast.Tuple | ast.List | ast.Set):
        return any(map(is_unnamed, side.elts))
    if isinstance(side, ast.UnaryOp):
        return is_unnamed(side.operand)
    if isinstance(side, ast.Constant):
        return isinstance(side.value, int)
    name = name_of(side)
    return name.isupper() and NAME.match(name) is None


def test_no_version_is_compared_with_a_bare_number() -> None:
    found = [
        f"{path}:{line}: {text}: {INSTEAD}"
        for path in repository.files_under(*ROOMS, suffix=".py")
        for line, text in constants_compared(repository.tree(path))
    ]
    assert found == []


#: A version that is compared with a number; 0 is no version that changes something.
BARE = re.compile(r"\bversion\s*(?:>=|<=|<|>|==|!=)\s*[1-9]|\d\.\.=?\d*\)\.contains\(&version")


def bare_numbers(source: str) -> list[str]:
    """The comparisons of a version with a number in the part of a Rust source that is no test."""
    return [match[0] for match in BARE.finditer(source.partition("#[cfg(test)]")[0])]


def test_no_version_in_rust_is_compared_with_a_bare_number() -> None:
    sources = [path for path in repository.rust_sources() if "tests" not in path]
    found = {path: bare for path in sources if (bare := bare_numbers(repository.text(path)))}
    assert found == {}, "compare with a constant WITH_ and what begins with the version"


def test_the_rule_for_rust_sees_a_number_and_leaves_tests_alone() -> None:
    assert bare_numbers("if version >= 4 {") == ["version >= 4"]
    assert bare_numbers("(8..=10).contains(&version)") == ["8..=10).contains(&version"]
    assert bare_numbers("version >= WITH_RACK && version > 0\n#[cfg(test)]\nversion >= 4") == []


@pytest.mark.parametrize(
    "code",
    [
        "context.version >= 9",
        "8 <= version <= LAST_VERSION_WITH_X",
        "event.version in (1, 2)",
        "connection.version_of(request) < _MANY",
        "min(version, 3)",
        "request.api_version == -1",
    ],
)
def test_the_rule_sees_a_number_in_every_form(code: str) -> None:
    assert list(constants_compared(ast.parse(code)))


def test_the_rule_lets_named_versions_be() -> None:
    code = "version >= _FIRST_VERSION_WITH_X and FIRST_FLEXIBLE_VERSION <= it.version <= api.max_version and x > 9"
    assert list(constants_compared(ast.parse(code))) == []
