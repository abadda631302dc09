"""What goes wrong while a broker runs: log directories that fail, and what it cannot go on after.

Owns the one reason for which a broker ends by itself. Must not know the parts that a failed directory concerns; they
are added as they are built.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pybroker.storage.log_dirs.directories import Directories

log = logging.getLogger("pybroker.broker")


class BrokerFailedError(Exception):
    """The broker cannot continue; the text is one line with the failure and where it happened."""


class Failures:
    """The failures of one run of a broker. Used from the event loop, but for `report_directory`."""

    def __init__(self, directories: Directories) -> None:
        self._loop = asyncio.get_running_loop()
        self._directories = directories
        self._on_lost: list[Callable[[str], None]] = []
        self._on_survived: list[Callable[[], None]] = []
        self._reason: asyncio.Future[str] = self._loop.create_future()

    def on_lost_directory(self, callback: Callable[[str], None]) -> None:
        """Call `callback` with the path of each directory that fails from now on, after those that came before it."""
        self._on_lost.append(callback)

    def on_survived(self, callback: Callable[[], None]) -> None:
        """Call `callback` when a directory has failed and the broker goes on without it."""
        self._on_survived.append(callback)

    def stop(self) -> None:
        """Call nobody any more: the parts have ended, and may know this object."""
        self._on_lost.clear()
        self._on_survived.clear()

    async def reason(self) -> str:
        """Wait until the broker cannot go on, and return why: one line that says what and where."""
        return await asyncio.shield(self._reason)

    def check(self) -> None:
        """Raise BrokerFailedError where the broker cannot continue."""
        if self._reason.done():
            raise BrokerFailedError(self._reason.result())

    def end(self, reason: str) -> None:
        """Note that the broker cannot go on, and why; the first reason counts."""
        if not self._reason.done():
            self._reason.set_result(reason)

    def report_directory(self, path: Path, error: OSError) -> None:
        """Have the loop take a directory out of use. From any thread."""
        self._loop.call_soon_threadsafe(self.lose_directory, str(path), str(error))

    def lose_directory(self, path: str, error: str) -> None:
        """Take a directory out of use; without the last one, or that of the metadata, the broker cannot go on."""
        log.error("log directory %s failed: %s", path, error)
        for callback in self._on_lost:
            callback(path)
        if self._directories.metadata.offline or not self._directories.online:
            self.end(f"log directory {path} failed: {error}")
            return
        for survived in self._on_survived:
            survived()
