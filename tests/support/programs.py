"""Programs that some tests need and a machine may lack.

A test that lacks one is skipped by name with the line that says what to install; with CI=true that is a failure, so
that a green CI has run everything.
"""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest

from pybench.peers import java

INSTALL = {
    "kcat": "kcat (Debian: apt-get install kcat)",
    "gcc": "a C compiler (Debian: apt-get install gcc)",
    "mount": "mount (Debian: apt-get install mount)",
}


def in_ci() -> bool:
    """Whether a missing program is a failure here."""
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def lacking(line: str) -> NoReturn:
    """Skip the running test with one line, or fail it in CI."""
    if in_ci():
        pytest.fail(f"CI runs every test, and here {line}", pytrace=False)
    pytest.skip(line)


def program(name: str) -> str:
    """The path of a program; skips (in CI: fails) the test where it is missing."""
    path = shutil.which(name)
    if path is None:
        lacking(f"{name} is not on the search path: install {INSTALL[name]}")
    return path


def kafka_tools() -> None:
    """Make sure that Kafka's Java tools can run; skips (in CI: fails) the test where Java or Maven is missing."""
    for line in java.missing_tools():
        lacking(line)
