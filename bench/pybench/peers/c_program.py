"""The C load program (`bench/cclient`), built if it is older than its sources."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

from pybench.checkout import BENCH, build_directory, building
from pybench.peers.errors import ArtefactError


@cache
def build_c_program() -> Path:
    """Return the path of `brokerload`. Raises ArtefactError, with the packages to install, if it cannot be built.

    `PYBENCH_RDKAFKA` overrides how librdkafka is linked (default `-lrdkafka`).
    """
    program = build_directory() / "cclient" / "brokerload"
    link = os.environ.get("PYBENCH_RDKAFKA", "-lrdkafka")
    words = ["make", "-s", "-C", str(BENCH / "cclient"), f"OUT={program}", f"RDKAFKA={link}"]
    try:
        with building():
            done = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise ArtefactError("make is not on the search path (Debian: make gcc librdkafka-dev libssl-dev npm)") from None
    if done.returncode != 0:
        raise ArtefactError(
            "brokerload could not be built; it needs what Debian has as gcc, librdkafka-dev, libssl-dev and npm:\n"
            + done.stderr.strip()[-1500:]
        )
    return program
