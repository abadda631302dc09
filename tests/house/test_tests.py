"""Tests wait for conditions and say claims (style 24)."""

from __future__ import annotations

import ast
import re

from tests.support import repository

PAUSE = re.compile(r"\b(time|asyncio|trio|anyio|gevent)\.sleep\b|\bimport sleep\b|thread::sleep")
SIMULATED = ("tests/simulation/simulated_", "tests/simulation/whole_")
"""What runs on a loop whose clock is simulated: to sleep there takes no time."""
CHECKS = ("assert_", "check_", "expect_", "verify_", "must_", "wait_until", "raises", "fail", "benchmark")


def test_no_test_sleeps() -> None:
    suites = [
        *repository.files_under("tests", suffix=".py"),
        *(path for path in repository.files_under("native", suffix=".rs") if "/tests/it/" in path),
    ]
    suites += [path for path in repository.rust_sources() if path.endswith("tests.rs")]
    found = [
        f"{path}:{number}: {line.strip()}"
        for path in suites
        if path != "tests/house/test_tests.py" and not path.startswith(SIMULATED)
        for number, line in enumerate(repository.text(path).splitlines(), 1)
        if PAUSE.search(line)
    ]
    assert found == [], "wait for a condition: tests.support.conditions.wait_until, a pipe, a socket, a process"


def test_every_test_asserts_or_expects() -> None:
    """A test without an assertion, an expected exception or a call that checks proves nothing but that it ran."""
    silent = [
        f"{path}:{node.lineno} {node.name}"
        for path in repository.files_under("tests", suffix=".py")
        for node in ast.walk(repository.tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not any(_checks(inner) for inner in ast.walk(node))
    ]
    assert silent == []


def _checks(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return True
    if not isinstance(node, ast.Call):
        return False
    return ast.unparse(node.func).rsplit(".", 1)[-1].lstrip("_").startswith(CHECKS)
