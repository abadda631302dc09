"""One command for each thing (style 25), and a README whose two commands are true."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

from tests.support import repository
from tests.support.repository import ROOT

TARGET = re.compile(r"^([a-z][a-z-]*):(?!=)", re.M)


#: The tests may themselves run below `make`, which sets variables for its children.
OUTSIDE_MAKE = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}


def make(*arguments: str) -> str:
    """What `make` prints."""
    ran = subprocess.run(["make", *arguments], cwd=ROOT, env=OUTSIDE_MAKE, capture_output=True, text=True, check=True)
    return ran.stdout


def test_help_lists_every_target() -> None:
    targets = set(TARGET.findall(repository.text("Makefile")))
    shown = {line.split()[0] for line in make("help").splitlines()}
    assert shown == targets
    assert {"help", "build", "fmt", "lint", "test", "demo", "bench", "docs"} <= targets


def test_the_readme_sets_up_and_runs_by_exactly_two_commands() -> None:
    commands = set(re.findall(r"^make ([a-z-]+)$", repository.section("README.md", "Start"), re.M))
    assert commands == {"demo", "test"}
    assert commands <= set(TARGET.findall(repository.text("Makefile")))


def test_ci_lints_and_runs_the_readmes_tests() -> None:
    called = re.findall(r"^(make \w+)", repository.text(".ci/run"), re.M)
    assert called == ["make lint", "make test"]


def steps(tmp_path: Path, target: str) -> str:
    """The commands of a target on a machine where nothing is installed yet."""
    return make("--dry-run", f"STAMPS={tmp_path / 'stamps'}", target)


def test_the_demo_installs_the_broker_and_pybench_and_no_more(tmp_path: Path) -> None:
    commands = steps(tmp_path, "demo")
    assert re.findall(r"(maturin develop|uv pip install) .*?(\S+)$", commands, re.M) == [
        ("uv pip install", "'maturin>=1.9,<2'"),
        ("maturin develop", "--uv"),
        ("uv pip install", "bench"),
    ]


def test_the_layout_is_rewritten_without_a_build(tmp_path: Path) -> None:
    commands = steps(tmp_path, "fmt")
    assert "ruff format" in commands
    assert "maturin develop" not in commands


def refusal(tmp_path: Path, setting: str) -> str:
    """The one line with which `make` refuses to begin on a machine that `setting` pretends."""
    stamps = tmp_path / "stamps"
    ran = subprocess.run(
        ["make", "--no-print-directory", f"STAMPS={stamps}", setting, str(stamps / "tools")],
        cwd=ROOT,
        env=OUTSIDE_MAKE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode != 0
    lines = [line for line in ran.stderr.splitlines() if not line.startswith("make")]
    assert len(lines) == 1
    return lines[0]


def test_an_old_cargo_is_reported_in_one_line(tmp_path: Path) -> None:
    line = refusal(tmp_path, "CARGO_AT_LEAST=99.0")
    assert re.fullmatch(r"cargo 99\.0 or newer is needed, and [\d.]+ was found: install .*", line)


def test_a_missing_python_is_reported_in_one_line(tmp_path: Path) -> None:
    assert refusal(tmp_path, "PYTHON=false").startswith("Python 3.11 or newer is needed, and 'false' is not: install")


def test_the_readmes_example_of_a_test_passes() -> None:
    # The others ask for fixtures: tests/conformance/test_testing_guide.py has pytest run them.
    example, *_ = re.findall(r"^```python\n(.*?)^```", repository.section("README.md", "In pytest"), re.M | re.S)
    names: dict[str, Any] = {}
    exec(compile(example, "README.md", "exec"), names)
    (test,) = [value for name, value in names.items() if name.startswith("test_")]
    assert test() is None
