"""A progress bar on standard error, where that is a terminal and `rich` is installed; nothing anywhere else.

The tools' standard output stays that of Kafka's tools.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

    from rich.progress import Progress


def _make_progress() -> Progress | None:
    """Return a bar where it can be displayed; `rich` is a dependency of pybench, but not of pybroker."""
    if not sys.stderr.isatty():
        return None
    try:
        from rich import progress
        from rich.console import Console
    except ImportError:
        return None
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[rate]}"),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
    )
    return progress.Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)


class ProgressBar:
    """`with ProgressBar("records sent", total) as bar: bar.update(done)`."""

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total = what, total
        self._waits = False
        self._progress = _make_progress()
        if self._progress is not None:
            self._task = self._progress.add_task(what, total=total, rate="")

    def __enter__(self) -> Self:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def wait_for(self, what: str, done: int, of: int) -> None:
        """Show that the load waits, and the progress of the wait."""
        if self._progress is not None:
            self._waits = True
            self._progress.update(self._task, description=f"waiting for {what}", completed=done, total=of)

    def update(self, done: int) -> None:
        """Set the progress; the first call after a wait restarts the time."""
        if self._progress is not None:
            if self._waits:
                self._waits = False
                self._progress.reset(self._task, description=self._what, total=self._total)
            speed = self._progress.tasks[0].speed
            rate = f"{speed / 1e6:.2f} M/s" if speed and speed >= 1e6 else f"{speed or 0:,.0f}/s"
            self._progress.update(self._task, completed=min(done, self._total), rate=rate)

    def report(self, line: str) -> None:
        """Print a line on standard output, above the bar."""
        if self._progress is not None:
            self._progress.stop()
        print(line, flush=True)
        if self._progress is not None:
            self._progress.start()
