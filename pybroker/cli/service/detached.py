"""A process without a terminal, and the pipe on which it reports the result of its start to the command.

Owns the two forks: a child in a session of its own, and a grandchild that is no session leader, so that it cannot
acquire a terminal. Must not know the program. It must be called before threads start.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

import msgspec

from pybroker.cli.errors import CommandError

if TYPE_CHECKING:
    from pathlib import Path

_MOST_BYTES = 65_536


class Reporter:
    """The detached process's end of the pipe."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def ready(self, line: str) -> None:
        """Report a successful start. The command that started this process prints `line` and exits."""
        self._report({"ready": line})

    def failed(self, line: str) -> None:
        """Report a failed start. The command prints `line` and exits with a nonzero status."""
        self._report({"failed": line})

    def _report(self, outcome: dict[str, str]) -> None:
        if self._pipe >= 0:
            # The command was killed meanwhile, so nothing reads the pipe.
            with contextlib.suppress(BrokenPipeError):
                os.write(self._pipe, msgspec.json.encode(outcome))
            os.close(self._pipe)
            self._pipe = -1


def detach(output: Path) -> Reporter | str:
    """Continue in a process without a terminal, whose standard output and error are appended to the file `output`.

    Returns the reporter in that process. In the calling process it waits for the report, and returns the line to print.
    There it raises CommandError after a failed start, or if the file cannot be opened.
    """
    try:
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    except OSError as error:
        raise CommandError(f"{output}: {error.strerror}") from None
    ours, theirs = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        os.close(file)
        os.close(theirs)
        os.waitpid(child, 0)
        return _outcome(ours, output)
    os.setsid()
    if os.fork():
        os._exit(0)
    os.close(ours)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, stream in ((nothing, 0), (file, 1), (file, 2)):
        os.dup2(number, stream)
    os.close(nothing)
    os.close(file)
    return Reporter(theirs)


def _outcome(pipe: int, output: Path) -> str:
    with os.fdopen(pipe, "rb") as reported:
        text = reported.read(_MOST_BYTES)
    if not text:
        raise CommandError(f"the broker ended before it was ready: the reason may be in {output}")
    outcome = msgspec.json.decode(text)
    if "failed" in outcome:
        raise CommandError(outcome["failed"])
    return str(outcome["ready"])
