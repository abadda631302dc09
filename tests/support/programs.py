"""External programs that some tests need and a machine may lack.

A test without its program is skipped, with a reason that names what to install. With CI=true it fails instead, so that
a successful CI run has run every test.
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
    "redis-server": "redis-server (Debian: apt-get install redis-server)",
}


def in_ci() -> bool:
    """Whether this is a CI run, in which a missing program is a failure."""
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def lacking(line: str) -> NoReturn:
    """Skip the running test with a reason of one line, or fail it in CI."""
    if in_ci():
        pytest.fail(f"CI runs every test, and here {line}", pytrace=False)
    pytest.skip(line)


def program(name: str) -> str:
    """Return the path of a program. Skips (in CI: fails) the test if it is missing."""
    path = shutil.which(name)
    if path is None:
        lacking(f"{name} is not on the search path: install {INSTALL[name]}")
    return path


def kafka_tools() -> None:
    """Check that Kafka's Java tools can run. Skips (in CI: fails) the test if Java or Maven is missing."""
    for line in java.missing_tools():
        lacking(line)
