"""Waits of a tool before its load starts, timed for its report and shown on a terminal.

Knows no Spark and no broker. `pybroker.cli.perf.progress` shows the load itself.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


class Waits:
    """`with waits.wait("Spark"): ...`. `seconds` has the duration of each wait, in order."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def wait(self, what: str) -> Iterator[None]:
        """Time the body of the context, and show its name with the elapsed seconds."""
        began = time.monotonic()
        try:
            with _shown(f"waiting for {what}"):
                yield
        finally:
            self.note(what, time.monotonic() - began)

    def note(self, what: str, seconds: float) -> None:
        """Add a wait that the caller has timed."""
        self.seconds[what] = round(self.seconds.get(what, 0.0) + seconds, 3)


@contextlib.contextmanager
def _shown(line: str) -> Iterator[None]:
    if not sys.stderr.isatty():
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as progress:
        progress.add_task(line, total=None)
        yield
