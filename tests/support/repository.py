"""The repository as data: its files, its Python modules as syntax trees, its Rust sources as text."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@cache
def files() -> tuple[str, ...]:
    """Return the paths, relative to the root, of every file that git tracks or would track."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(sorted(path for path in listed.stdout.splitlines() if (ROOT / path).is_file()))


def files_under(*folders: str, suffix: str = "") -> list[str]:
    """Return the files below the folders whose names end in `suffix`."""
    prefixes = tuple(f"{folder.rstrip('/')}/" for folder in folders)
    return [path for path in files() if path.startswith(prefixes) and path.endswith(suffix)]


@cache
def text(path: str) -> str:
    """Return the content of one file."""
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def tree(path: str) -> ast.Module:
    """Return the syntax tree of one Python file."""
    return ast.parse(text(path), filename=path)


def imported_modules(path: str) -> Iterator[tuple[int, str]]:
    """Return line and dotted name of each absolute import of a Python file. `from a import b` yields `a.b`."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


def python_packages() -> list[str]:
    """Return the names of the packages directly below `pybroker`."""
    return sorted(
        {path.split("/")[1] for path in files_under("pybroker", suffix="/__init__.py") if path.count("/") == 2}
    )


def rust_rooms() -> list[str]:
    """Return the names of the native core's crates: all except the Python bindings, benchmarks and fuzz targets."""
    crates = {path.split("/")[1] for path in files_under("native") if path.endswith("/src/lib.rs")}
    return sorted(crates - {"py"})


def rust_sources() -> list[str]:
    """Return the paths of the core's sources, including files of unit tests."""
    return files_under(*(f"native/{room}/src" for room in rust_rooms()), suffix=".rs")


def docstring(path: str) -> str | None:
    """Return the docstring of a Python file."""
    return ast.get_docstring(tree(path))


def section(path: str, title: str) -> str:
    """Return the text of one section of a Markdown file, without its heading and the following sections."""
    match = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ |\Z)", text(path), re.M | re.S)
    assert match, f"{path} has no section '{title}'"
    return match[1]
