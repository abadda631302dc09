"""The tail stays short (style 5), and an exception to a lint says why."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.support import repository

FILE_LINES, FUNCTION_LINES = 500, 80
#: What is longer, and why it stays. This list may only shrink.
LONG: dict[str, str] = {}
SOURCES = [
    path
    for suffix in (".py", ".rs")
    for path in repository.files_under("pybroker", "native", "bench", "spark", "docs", "changes", suffix=suffix)
    if not path.endswith("tests.rs") and "/tests/it/" not in path and not path.startswith("native/bench/")
]
RUST_FUNCTION = re.compile(r"^( *)(?:pub(?:\([^)]*\))? )?(?:const )?(?:async )?(?:unsafe )?fn (\w+)")


def functions(path: str) -> Iterator[tuple[str, int]]:
    """Name and number of lines of each function of a file."""
    if path.endswith(".py"):
        for node in ast.walk(repository.tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
                yield node.name, node.end_lineno - node.lineno + 1
        return
    lines = repository.text(path).splitlines()
    for first, line in enumerate(lines):
        if found := RUST_FUNCTION.match(line):
            ends = (number for number, text in enumerate(lines[first:]) if text == f"{found[1]}}}")
            yield found[2], next(ends, 0) + 1


def code_lines(path: str) -> int:
    """The lines of a file without the tests at its end."""
    return len(repository.text(path).split("#[cfg(test)]\nmod tests {")[0].splitlines())


def test_no_file_is_longer_than_it_has_a_reason_for() -> None:
    long = {path for path in SOURCES if code_lines(path) > FILE_LINES}
    assert sorted(long - LONG.keys()) == []


def test_no_function_is_longer_than_it_has_a_reason_for() -> None:
    long = {f"{path}:{name}" for path in SOURCES for name, lines in functions(path) if lines > FUNCTION_LINES}
    assert sorted(long - LONG.keys()) == []


def test_the_list_of_long_ones_only_shrinks() -> None:
    still = {path for path in SOURCES if code_lines(path) > FILE_LINES}
    still |= {f"{path}:{name}" for path in SOURCES for name, lines in functions(path) if lines > FUNCTION_LINES}
    assert sorted(LONG.keys() - still) == []


def test_a_silenced_lint_says_why() -> None:
    silent = [
        f"{path}:{number}: {line.strip()}"
        for path in SOURCES
        if path.endswith(".py")
        for number, line in enumerate(repository.text(path).splitlines(), 1)
        if re.search(r"# noqa: [A-Z0-9, ]+$|# noqa$", line)
    ]
    assert silent == []
