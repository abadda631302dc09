"""Control records that end transactions, appended to partitions that this broker leads.

Owns the wait until appended markers are committed, and its timeout: `write` for a request, `begin` for the transaction
coordinator on the same broker. Must not know requests or transactions: the caller provides the append function.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from pybroker.machine.parts import parts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pybroker.coordinator.runtime.commits import CommitWaits
    from pybroker.storage.native import Partition

    EndedTransaction = tuple[Partition, int, int, bool, int, int]
    """The partition, the producer's id, the epoch of the marker, whether it commits, the coordinator's epoch, and the
    `transaction.version` of the transaction."""

_AT_ONCE = 200
"""Markers appended before other tasks of the loop run: some milliseconds."""


class Appended(Protocol):
    """Markers that were appended together."""

    @property
    def is_awaited(self) -> bool:
        """Whether some marker is not committed yet."""

    def error_codes(self) -> list[int]:
        """Return Kafka's error code for each marker; 0 if it is known to be committed."""


class Markers:
    """Ends transactions in partitions. Used from one event loop."""

    def __init__(
        self,
        append: Callable[[Sequence[EndedTransaction], int], Appended],
        commits: CommitWaits,
        *,
        timeout_ms: Callable[[], int],
    ) -> None:
        """`append` takes transactions and a ticket of `commits`. `timeout_ms` returns `request.timeout.ms`."""
        self._append = append
        self._commits = commits
        self._timeout_ms = timeout_ms

    async def write(self, ended: Sequence[EndedTransaction]) -> list[int]:
        """Append a marker for each transaction; returns Kafka's error codes once all appended markers are committed.

        A marker that is not committed in time gets REQUEST_TIMED_OUT, and stays in the log.
        """
        appended: list[Appended] = []
        completed: list[asyncio.Future[None]] = []
        for some in parts(ended, most=_AT_ONCE):
            if appended:
                await asyncio.sleep(0)
            self._append_some(some, appended, completed)
        if completed:
            await asyncio.wait(completed, timeout=self._timeout_ms() / 1000)
        return [code for together in appended for code in together.error_codes()]

    def begin(self, ended: Sequence[EndedTransaction], then: Callable[[list[int]], None]) -> None:
        """Append the markers of transactions as one batch, without an asyncio task; `write` is the version with one.

        `then` is called with the error codes, immediately if the batch is committed already.
        """
        is_over = False

        def complete() -> None:
            nonlocal is_over
            if not is_over:
                is_over = True
                timer.cancel()
                then(markers.error_codes())

        ticket = self._commits.expect(complete)
        markers = self._append(ended, ticket)
        if not markers.is_awaited:
            self._commits.forget(ticket)
            then(markers.error_codes())
            return
        timer = asyncio.get_running_loop().call_later(self._timeout_ms() / 1000, complete)

    def _append_some(
        self, some: Sequence[EndedTransaction], appended: list[Appended], completed: list[asyncio.Future[None]]
    ) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        ticket = self._commits.expect(lambda: None if future.done() else future.set_result(None))
        markers = self._append(some, ticket)
        appended.append(markers)
        if markers.is_awaited:
            completed.append(future)
        else:
            self._commits.forget(ticket)
