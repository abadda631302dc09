"""Says why a producer's call waits: that no broker answers.

The engine waits silently until max.block.ms is over. Owns a thread that queries the cluster once for each call that has
waited for a second. Must not know the records.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Self

from pybroker.client.administration.admin import Admin
from pybroker.client.errors import ClientError
from pybroker.client.network.retry_budget import is_retriable
from pybroker.client.settings import AdminSettings, ProducerSettings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

_WARNS_AFTER_S = 1.0
_POLL_INTERVAL_S = 0.25
_REQUESTS_FOR_MS = 500
"""Timeout of a query in seconds."""


class BrokerWatch:
    """`with BrokerWatch(...) as watch:`, with `watch.begin()` before and `watch.end()` after a call that may wait."""

    def __init__(self, bootstrap_servers: str, properties: Mapping[str, str]) -> None:
        """`properties` are those that the producer has accepted."""
        self._servers = bootstrap_servers
        self._properties = {
            **AdminSettings.acting(properties),
            "request.timeout.ms": _REQUESTS_FOR_MS,
            "default.api.timeout.ms": _REQUESTS_FOR_MS,
        }
        self._max_block_ms = int(properties.get("max.block.ms", ProducerSettings.max_block_ms.default))
        self._began: float | None = None
        """Start of the call in progress."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pybroker-broker-watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def begin(self) -> None:
        """Record the start of a call."""
        self._began = time.monotonic()

    def end(self) -> None:
        """Record the end of the call."""
        self._began = None

    def _run(self) -> None:
        requested: float | None = None
        while not self._over.wait(_POLL_INTERVAL_S):
            began = self._began
            if began is not None and began != requested and time.monotonic() - began >= _WARNS_AFTER_S:
                requested = began
                failure = self._query()
                if failure is not None and self._began == began:
                    self._report(failure, began)

    def _report(self, failure: ClientError, began: float) -> None:
        left_s = max(0.0, began + self._max_block_ms / 1000 - time.monotonic())
        line = f"{failure}; trying again for {left_s:.0f} s (max.block.ms={self._max_block_ms})"
        print(line, file=sys.stderr, flush=True)

    def _query(self) -> ClientError | None:
        """Return the error of a query, where a retry may help."""
        try:
            with Admin(self._servers, self._properties) as admin:
                admin.describe_cluster()
        except ClientError as error:
            if not is_retriable(error):
                return None  # the producer gets the same error and reports it
            # The error itself, without the number and time of this query's attempts.
            return error.__cause__ if isinstance(error.__cause__, ClientError) else error
        return None
