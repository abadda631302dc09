"""The code blocks of README and the guides, extracted so that tests can run them.

A page is one program: its Python blocks run in order and share their names. A block that no test can run has the reason
in the line before it: `<!-- not run: reason -->`. A block of commands has the name of the test that runs it there:
`<!-- run: file -->`. A `text` block right after a Python block is its expected output.
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
"""The broker's address in the pages."""
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
    """Why no test runs the block. None if a test runs it."""
    prints: str | None
    test: str | None = None
    """The test file that runs the commands of the block."""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    """Return the paths of README and every guide."""
    return ["README.md", *repository.files_under("docs/guides", suffix=".md")]


def blocks(page: str) -> list[Block]:
    """Return the code blocks of a page, in order."""
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
    """Run a page's Python with `servers` as the broker, and check its output. Returns the defined names."""
    names["__name__"] = "__guide__"
    for block in blocks(page):
        if block.language != "python" or block.why_not is not None:
            continue
        code = block.code
        for old, new in {**dict.fromkeys(SERVERS, servers), **(replace or {})}.items():
            code = code.replace(old, new)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, str(block), "exec", dont_inherit=True), names)
        if block.prints is not None:
            assert printed.getvalue() == block.prints, str(block)
    return names


def tests_of(names: Mapping[str, Any]) -> list[Callable[..., Any]]:
    """Return the test functions that a page defines."""
    return [value for name, value in names.items() if name.startswith("test_")]
