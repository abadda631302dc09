"""Where the things of a checkout lie that the comparison needs and a wheel does not carry: C and Java sources, results.

Stands before every run of `pybench compare`; the perf tools themselves need nothing from here.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The repository's root: the folder that holds `bench/`."""

BENCH = ROOT / "bench"
"""Sources of the load programs, scenarios and results."""


def build_directory() -> Path:
    """The folder for everything made from this checkout; `PYBENCH_BUILD` moves it, so that checkouts can share it."""
    return Path(os.environ.get("PYBENCH_BUILD") or ROOT / "build")


@contextlib.contextmanager
def building() -> Iterator[None]:
    """One process at a time makes something in the build directory; the others wait and find it made. Not reentrant."""
    directory = build_directory()
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
