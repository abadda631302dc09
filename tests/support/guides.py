"""The code of README and guides, cut out of the pages so that tests can run it.

A page is one program: its Python blocks run in their order and share their names. A block that no test can run says why
in the line before it: `<!-- not run: reason -->`; commands name the test that runs them: `<!-- run: file -->`. A block
of `text` right after one of Python is what that one prints.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.support import repository

SERVERS = ("127.0.0.1:9092", "localhost:9092")
"""What the pages call the broker."""
_FENCE = re.compile(
    r"(?:<!-- not run: (?P<why>[^\n]+?) -->\n|<!-- run: (?P<test>[^\n]+?) -->\n)?"
    r"^```(?P<language>\w*)\n(?P<code>.*?)^```$"
    r"(?:\n+^```text\n(?P<prints>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
CODE = ("python", "sh")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    code: str
    why_not: str | None
    """Why no test runs it; None: one does."""
    prints: str | None
    test: str | None = None
    """The file of the test that runs its commands."""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """README and every guide."""
    return ["README.md", *repository.files_under("docs/guides", suffix=".md")]


def blocks(page: str) -> list[Block]:
    """A page's blocks, in order."""
    text = repository.text(page)
    return [
        Block(
            page,
            text.count("\n", 0, found.start("code")),
            found["language"],
            found["code"],
            found["why"],
            found["prints"],
            found["test"],
        )
        for found in _FENCE.finditer(text)
    ]


def run(page: str, servers: str, replace: Mapping[str, str] | None = None, **names: Any) -> dict[str, Any]:
    """Run a page's Python with `servers` as the broker; returns the names that it leaves. Checks what blocks print."""
    names["__name__"] = "__guide__"
    for block in blocks(page):
        if block.language != "python" or block.why_not is not None:
            continue
        code = block.code
        for old, new in {**dict.fromkeys(SERVERS, servers), **(replace or {})}.items():
            code = code.replace(old, new)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(block), "exec"), names)
        if block.prints is not None:
            assert printed.getvalue() == block.prints, str(block)
    return names


def tests_of(names: Mapping[str, Any]) -> list[Callable[..., Any]]:
    """The test functions that a page defines."""
    return [value for name, value in names.items() if name.startswith("test_")]
