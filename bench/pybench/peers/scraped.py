"""pybroker whose metrics are scraped every second, as by a Prometheus server with a short interval.

Owns the scraper, a thread of this process, so that its cost is not the broker's. Must not interpret the metrics.
"""

from __future__ import annotations

import re
import threading
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from pybench.peers.errors import StartError
from pybench.peers.pybroker import Pybroker
from pybench.peers.server_log import SERVER_LOG, log_tail

SCRAPED: Final = "pybroker-scraped"
"""The name of this broker in scenarios."""
_EVERY_S = 1.0
_TIMEOUT_S = 10.0


class Scraped(Pybroker):
    """One node with an admin listener, and the thread that scrapes it."""

    def __init__(self, directory: Path, overrides: Mapping[str, str]) -> None:
        """As `Pybroker`, with an admin listener on loopback."""
        super().__init__(directory, {**overrides, "admin.http.listener": "127.0.0.1:0"})
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._failure: Exception | None = None

    def __enter__(self) -> Self:
        super().__enter__()
        text = (self.directory / SERVER_LOG).read_text(encoding="utf-8")
        found = re.search(r"admin listener at (http://\S+)", text)
        if found is None:
            self.stop()
            raise StartError(f"pybroker did not say where its admin listener is\n{log_tail(self.directory)}")
        self._thread = threading.Thread(target=self._read, args=(f"{found[1]}/metrics",), name="scraper")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        super().__exit__(kind, error, trace)
        if self._failure is not None and error is None:
            raise StartError(f"the metrics could not be read: {self._failure}")

    def _read(self, url: str) -> None:
        while not self._ended.wait(_EVERY_S):
            try:
                with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as response:
                    response.read()
            except OSError as failure:
                self._failure = failure
                return
