"""CommitWaits: the one place where a coordinator waits until what it appended is committed.

Owns the tickets of appends that are not committed yet. With one replica an append is committed when it is settled: at
once, or where a sync is due first (`flush=group`, `log.flush.interval.messages`) when a thread of the data plane
reports it. Must not know what was appended, nor who is answered then.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from pybroker.coordinator.runtime.errors import NotCoordinatorError
from pybroker.machine.reply import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.coordinator.runtime.log import PartitionLog


class _Uncommitted(NamedTuple):
    """An append that is waited for."""

    log: PartitionLog
    end_offset: int
    committed: Reply
    then: Callable[[], None]


class CommitWaits:
    """The appends of coordinators that are waited for. Runtimes that share a data plane share one, for its tickets."""

    def __init__(self) -> None:
        self._uncommitted: dict[int, _Uncommitted] = {}
        self._expected: dict[int, Callable[[], None]] = {}
        self._tickets = count()

    def expect(self, settled: Callable[[], None]) -> int:
        """Return a ticket for appends of one's own; `settled` is called when they are settled, or never will be."""
        ticket = next(self._tickets)
        self._expected[ticket] = settled
        return ticket

    def forget(self, ticket: int) -> None:
        """Take back a ticket that no append has."""
        del self._expected[ticket]

    def committed(self, log: PartitionLog, end_offset: int, then: Callable[[], None]) -> Reply | None:
        """Return None where all below `end_offset` is committed; otherwise a reply that is set when it is.

        The reply is a `NotCoordinatorError` where it cannot be committed. `then` is called after the reply was set.
        """
        if log.has_settled(end_offset):
            return None
        ticket, committed = next(self._tickets), Reply()
        self._uncommitted[ticket] = _Uncommitted(log, end_offset, committed, then)
        log.settle(end_offset, ticket)
        return committed

    def append_settled(self, ticket: int) -> None:
        """Take note that an append was synced, or could not be: its replies are completed."""
        expected = self._expected.pop(ticket, None)
        if expected is not None:
            expected()
            return
        log, end_offset, committed, then = self._uncommitted.pop(ticket)
        if log.has_settled(end_offset):
            committed(None, None)
        else:
            committed(None, NotCoordinatorError("the log could not be synced"))
        then()
