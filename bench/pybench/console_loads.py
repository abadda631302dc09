"""Loads of console commands, pybroker's and kcat: consume a topic to /dev/null, and produce the lines of a file.

Each is a process of its own. Its time includes its start, connecting and the last acknowledgement. Standard input and
output are files, so that no shell and no pipe is measured.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from pybench.checkout import build_directory, building
from pybench.peers.errors import MissingToolError, PeerError

TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class Timed:
    """The wall-clock and CPU seconds of one command."""

    seconds: float
    user_s: float
    system_s: float


def consume_words(program: str, servers: str, topic: str, records: int) -> list[str]:
    """Return the command that prints a topic's records from the beginning, and ends after this many."""
    if program == "kcat":
        return [_kcat(), "-C", "-b", servers, "-t", topic, "-o", "beginning", "-q", "-c", str(records)]
    where = ["--bootstrap-server", servers, "--topic", topic]
    return [_pybroker(), "console-consumer", *where, "--from-beginning", "--max-messages", str(records)]


def produce_words(program: str, servers: str, topic: str) -> list[str]:
    """Return the command that sends each line of standard input."""
    if program == "kcat":
        return [_kcat(), "-P", "-b", servers, "-t", topic]
    return [_pybroker(), "console-producer", "--bootstrap-server", servers, "--topic", topic]


def lines(records: int, size: int) -> Path:
    """Return a file of lines of `size` bytes including the line end, so that records have `size` - 1 bytes."""
    path = build_directory() / f"lines-{records}-{size}.txt"
    with building():
        if not path.exists():
            whole = path.with_suffix(".part")
            with whole.open("wb") as file:
                for first in range(0, records, 10_000):
                    numbers = range(first, min(records, first + 10_000))
                    file.write(b"".join(b"%0*d\n" % (size - 1, number) for number in numbers))
            whole.rename(path)
    return path


def run_timed(words: list[str], source: Path | None = None) -> Timed:
    """Run a command to its end and discard its output. Raises PeerError."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with (source or Path("/dev/null")).open("rb") as given:
        done = subprocess.run(
            words, stdin=given, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=TIMEOUT_S, check=False
        )
    seconds, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise PeerError(f"{words[0]} ended with status {done.returncode}: {done.stderr.decode()[-1500:]}")
    return Timed(seconds, after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime)


def _pybroker() -> str:
    return str(Path(sys.executable).with_name("pybroker"))


def _kcat() -> str:
    found = shutil.which("kcat")
    if found is None:
        raise MissingToolError("kcat", "kcat (Debian: kcat)")
    return found
