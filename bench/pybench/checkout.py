"""Where the things of a checkout lie that the comparison needs and a wheel does not carry: C and Java sources, results.

Stands before every run of `pybench compare`; the perf tools themselves need nothing from here.
"""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The repository's root: the folder that holds `bench/`."""

BENCH = ROOT / "bench"
"""Sources of the load programs, scenarios and results."""


def build_directory() -> Path:
    """The folder for everything made from this checkout; `PYBENCH_BUILD` moves it, so that checkouts can share it."""
    return Path(os.environ.get("PYBENCH_BUILD") or ROOT / "build")
