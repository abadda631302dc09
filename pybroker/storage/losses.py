"""Records found missing when logs are opened: logged as warnings, summed up by log directory, and read back from files.

Owns the log messages and the format of the file `recovery-report`, which the native log writes beside the records. Must
not decide what is damage.
"""

from __future__ import annotations

import json
import logging
import threading
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pybroker.storage.native import RecoveryProgress

log = logging.getLogger("pybroker.storage")

REPORT_NAME = "recovery-report"
"""The file in a log's directory that lists the losses found each time the log was opened."""

_TORN_WRITE = "torn-write"


class Report(NamedTuple):
    """A line of the file: time, cause, and the logged sentence."""

    time_ms: int
    cause: str
    from_offset: int
    bytes: int
    set_aside: tuple[str, ...]
    text: str


class _Sum:
    """Losses found in one log directory."""

    def __init__(self) -> None:
        self.torn: set[str] = set()
        self.damaged: set[str] = set()
        self.bytes = 0
        self.files = 0


class Losses:
    """Losses found when the logs are opened at one start. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums: dict[Path, _Sum] = {}

    def gather(self, progress: Mapping[Path, RecoveryProgress]) -> None:
        """Log each loss found since the last call on a line of its own, and add it to the sums."""
        for directory, found in progress.items():
            for name, losses, warnings in found.take_found():
                for text in warnings:
                    log.warning("%s: %s", directory / name, text)
                for cause, size, files, text in losses:
                    log.warning("%s: %s", directory / name, text)
                    self._add(directory, name, cause, size, files)

    def _add(self, directory: Path, name: str, cause: str, size: int, files: int) -> None:
        with self._lock:
            total = self._sums.setdefault(directory, _Sum())
            (total.torn if cause == _TORN_WRITE else total.damaged).add(name)
            total.bytes += size
            total.files += files

    def summarize(self) -> None:
        """Log one line for each directory with losses, and reset the sums."""
        with self._lock:
            sums, self._sums = self._sums, {}
        for directory, total in sums.items():
            log.warning(
                "log directory %s: %d partitions are damaged and %d ended in an incomplete write; "
                "%d bytes were removed from logs and %d files were set aside. `pybroker log-dirs --damage --data %s` "
                "lists them with the reasons",
                directory,
                len(total.damaged),
                len(total.torn),
                total.bytes,
                total.files,
                directory,
            )


def read_reports(directory: Path) -> list[Report]:
    """Return the losses found when the log in `directory` was opened, oldest first; raises OSError.

    Damaged lines are skipped.
    """
    try:
        lines = (directory / REPORT_NAME).read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    reports = []
    for line in lines:
        try:
            it = json.loads(line)
            files = tuple(map(str, it["set_aside"]))
            numbers = int(it["from_offset"]), int(it["bytes"])
            reports.append(Report(int(it["time_ms"]), str(it["cause"]), *numbers, files, str(it["text"])))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            continue
    return reports
