"""Markers: the ends of transactions, written to partitions that this broker leads, and known to have been.

Owns the wait of an append of markers until they are committed, and its bound: `write` for a request, `begin` for the
coordinator that lives beside the partitions. Must not know what a request is, nor which transactions there are: the
append is handed in.
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
    `transaction.version` that the transaction follows."""

_AT_ONCE = 200
"""Markers appended before others on the loop have their turn: some milliseconds."""


class Appended(Protocol):
    """Markers that were appended together."""

    @property
    def is_awaited(self) -> bool:
        """Whether something has to come before all are committed."""

    def error_codes(self) -> list[int]:
        """Return of each what keeps it from being known as committed, as a code of Kafka; 0 for nothing."""


class Markers:
    """Ends transactions in partitions. Used from one event loop."""

    def __init__(
        self,
        append: Callable[[Sequence[EndedTransaction], int], Appended],
        commits: CommitWaits,
        *,
        timeout_ms: Callable[[], int],
    ) -> None:
        """`append` is given transactions and a ticket of `commits`. `timeout_ms` is `request.timeout.ms`."""
        self._append = append
        self._commits = commits
        self._timeout_ms = timeout_ms

    async def write(self, ended: Sequence[EndedTransaction]) -> list[int]:
        """Append a marker for each, and return when all that were appended are committed: a code of Kafka for each.

        What is not committed within the time is REQUEST_TIMED_OUT; its marker stays where it is.
        """
        appended: list[Appended] = []
        settled: list[asyncio.Future[None]] = []
        for some in parts(ended, most=_AT_ONCE):
            if appended:
                await asyncio.sleep(0)
            self._append_some(some, appended, settled)
        if settled:
            await asyncio.wait(settled, timeout=self._timeout_ms() / 1000)
        return [code for together in appended for code in together.error_codes()]

    def begin(self, ended: Sequence[EndedTransaction], then: Callable[[list[int]], None]) -> None:
        """As `write`, for what one append takes, without a task: `then` is called with the codes, now where nothing is
        to be waited for.
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
        self, some: Sequence[EndedTransaction], appended: list[Appended], settled: list[asyncio.Future[None]]
    ) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        ticket = self._commits.expect(lambda: None if future.done() else future.set_result(None))
        markers = self._append(some, ticket)
        appended.append(markers)
        if markers.is_awaited:
            settled.append(future)
        else:
            self._commits.forget(ticket)
