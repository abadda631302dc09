"""Tests wait for conditions and say claims (style 24)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.support import repository

PAUSE = re.compile(r"\b(time|asyncio|trio|anyio|gevent)\.sleep\b|\bimport sleep\b|thread::sleep")
SIMULATED = ("tests/simulation/simulated_", "tests/simulation/whole_")
"""What runs on a loop whose clock is simulated: to sleep there takes no time."""
WAITS: dict[str, str | int] = {
    "wait_until": "within",
    "until": "within",
    "wait_for": 1,
    "timeout": 0,
    "result": 0,
    "flush": 0,
    **dict.fromkeys(("run", "communicate", "create_connection", "HTTPConnection", "list_topics"), "timeout"),
}
"""Calls that wait for a condition, and the argument which is the deadline, by name or by number."""
DEADLINE_S = 60
CLOCKS = ("monotonic()", "perf_counter()", "time.time()", "monotonic_ns()", "perf_counter_ns()")
"""Clocks that go on while a busy machine does other things: the CPU time of `thread_time` does not."""
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


def test_no_wait_for_a_condition_has_a_deadline_that_a_busy_machine_misses() -> None:
    found = [
        f"{path}:{node.lineno} {ast.unparse(node)[:80]}"
        for path, node in _nodes()
        if isinstance(node, ast.Call) and 1 < _deadline_s(node) < DEADLINE_S
    ]
    assert found == [], f"wait for {DEADLINE_S} s: only a test that fails takes so long"


def test_no_time_of_a_clock_is_bounded_from_above() -> None:
    found = [
        f"{path}:{node.lineno} {ast.unparse(node)[:80]}"
        for path, node in _nodes()
        if isinstance(node, ast.Assert)
        for compared in ast.walk(node.test)
        if isinstance(compared, ast.Compare)
        and isinstance(compared.ops[0], ast.Lt | ast.LtE)
        and isinstance(compared.left, ast.BinOp)
        and isinstance(compared.left.op, ast.Sub)
        and ast.unparse(compared.left.left).endswith(CLOCKS)
    ]
    assert found == [], "bound time.thread_time(), move a clock, or wait for a condition"


def _nodes() -> Iterator[tuple[str, ast.AST]]:
    """Every node of what runs by the clock of the machine."""
    for path in repository.files_under("tests", suffix=".py"):
        if not path.startswith("tests/simulation/"):
            yield from ((path, node) for node in ast.walk(repository.tree(path)))


def _deadline_s(call: ast.Call) -> float:
    """The seconds that a call waits at most, where a number says so; else 0."""
    at = WAITS.get(ast.unparse(call.func).rsplit(".", 1)[-1])
    given: ast.AST | None = None
    if isinstance(at, str):
        given = next((one.value for one in call.keywords if one.arg == at), None)
    elif at is not None and len(call.args) > at:
        given = call.args[at]
    number = given.value if isinstance(given, ast.Constant) else 0
    return number if isinstance(number, int | float) else 0


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
