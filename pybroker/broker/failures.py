"""Failures of a running broker: failed log directories, and failures that end the broker.

Owns the one reason why the broker ends. Must not know the parts that a failed directory affects: these parts register
callbacks.
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
    """The broker cannot continue. The text is one line with the failure and its location."""


class Failures:
    """The failures of one run of a broker. Used from the event loop, except `report_directory`."""

    def __init__(self, directories: Directories) -> None:
        self._loop = asyncio.get_running_loop()
        self._directories = directories
        self._on_lost: list[Callable[[str], None]] = []
        self._on_survived: list[Callable[[], None]] = []
        self._reason: asyncio.Future[str] = self._loop.create_future()

    def on_lost_directory(self, callback: Callable[[str], None]) -> None:
        """Register `callback` for the path of each log directory that fails.

        Callbacks are called in the order of registration.
        """
        self._on_lost.append(callback)

    def on_survived(self, callback: Callable[[], None]) -> None:
        """Register `callback` for failed directories that do not end the broker."""
        self._on_survived.append(callback)

    def stop(self) -> None:
        """Remove all callbacks, so that they do not keep stopped parts of the broker in memory."""
        self._on_lost.clear()
        self._on_survived.clear()

    async def reason(self) -> str:
        """Wait until the broker cannot continue, and return the reason: one line with the failure and its location."""
        return await asyncio.shield(self._reason)

    def check(self) -> None:
        """Raise BrokerFailedError if the broker cannot continue."""
        if self._reason.done():
            raise BrokerFailedError(self._reason.result())

    def end(self, reason: str) -> None:
        """End the broker for a reason. Only the first reason counts."""
        if not self._reason.done():
            self._reason.set_result(reason)

    def report_directory(self, path: Path, error: OSError) -> None:
        """Schedule `lose_directory` on the event loop. Called from any thread."""
        self._loop.call_soon_threadsafe(self.lose_directory, str(path), str(error))

    def lose_directory(self, path: str, error: str) -> None:
        """Take a failed log directory offline.

        Ends the broker if no directory is left, or if it is the metadata directory.
        """
        log.error("log directory %s failed: %s", path, error)
        for callback in self._on_lost:
            callback(path)
        if self._directories.metadata.offline or not self._directories.online:
            self.end(f"log directory {path} failed: {error}")
            return
        for survived in self._on_survived:
            survived()
