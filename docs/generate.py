"""Writes docs/reference from the code: `python docs/generate.py`, or `--check` to only compare.

Owns which page is made from what. Knows no content: configuration keys come from their declarations, the table of APIs
from the handlers' data sheets, diagrams from the machines' transition tables.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

from pybroker.config import reference

REFERENCE = Path(__file__).resolve().parent / "reference"


def configs() -> str:
    """The page of all configuration keys."""
    return "\n".join(reference.lines()) + "\n"


def modules(package: ModuleType) -> Iterator[ModuleType]:
    """Every module below a package, by name."""
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not found.name.endswith((".__main__", "._native")):
            yield importlib.import_module(found.name)


PAGES: dict[str, Callable[[], str]] = {"configs.md": configs}


def main(arguments: list[str]) -> int:
    """Write every page; with `--check` write nothing and name the pages that differ."""
    stale = []
    for name, build in PAGES.items():
        path, content = REFERENCE / name, build()
        if path.exists() and path.read_text(encoding="utf-8") == content:
            continue
        stale.append(name)
        if arguments != ["--check"]:
            path.parent.mkdir(exist_ok=True)
            path.write_text(content, encoding="utf-8")
            print(f"docs/reference/{name}")
    if arguments == ["--check"] and stale:
        print(f"docs/reference is behind the code ({', '.join(stale)}): run make docs", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
