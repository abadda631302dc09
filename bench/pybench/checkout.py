"""Paths in a checkout that the comparison needs and a wheel does not contain: C and Java sources, results.

Every run of `pybench compare` uses these paths. The perf tools do not.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The root of the repository: the parent directory of `bench/`."""

BENCH = ROOT / "bench"
"""Sources of the load programs, scenarios and results."""


def build_directory() -> Path:
    """Return the directory for build outputs. `PYBENCH_BUILD` overrides it, so that checkouts can share one."""
    return Path(os.environ.get("PYBENCH_BUILD") or ROOT / "build")


@contextlib.contextmanager
def building() -> Iterator[None]:
    """Lock the build directory, so that one process builds while others wait for its output. Not reentrant."""
    directory = build_directory()
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
