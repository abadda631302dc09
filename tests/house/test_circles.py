"""No module needs, directly or by others, a module that needs it: not even for the types of an annotation."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.support import repository

MODULES = {
    path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): path
    for path in repository.files_under("pybroker", suffix=".py")
}


def imported(path: str) -> Iterator[str]:
    """The modules of ours that a file imports, wherever in it."""
    for node in ast.walk(repository.tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for name in node.names:
                full = f"{node.module}.{name.name}"
                yield full if full in MODULES else node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def in_circles(uses: dict[str, set[str]]) -> set[str]:
    """What is left when everything has gone that uses nothing which is left, or that nothing left uses."""
    left = {module: used & uses.keys() - {module} for module, used in uses.items()}
    while True:
        used_by_others = {used for module in left for used in left[module]}
        gone = {module for module, used in left.items() if not used or module not in used_by_others}
        if not gone:
            return set(left)
        left = {module: used - gone for module, used in left.items() if module not in gone}


def test_a_circle_is_found() -> None:
    assert in_circles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == {"b", "c"}


def test_python_has_no_circle() -> None:
    assert in_circles({module: set(imported(path)) for module, path in MODULES.items()}) == set()
