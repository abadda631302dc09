"""CommitWaits: the only place where a coordinator waits until an append is committed.

Owns the tickets of uncommitted appends. With one replica an append is committed when it is settled: at once, or, if a
sync is due first (`flush=group`, `log.flush.interval.messages`), when a thread of the data plane reports it. Must not
know the appended records, nor the replies.
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
    """An append that is not committed yet."""

    log: PartitionLog
    end_offset: int
    committed: Reply
    then: Callable[[], None]


class CommitWaits:
    """The coordinators' uncommitted appends. Runtimes that share a data plane share one, for unique tickets."""

    def __init__(self) -> None:
        self._uncommitted: dict[int, _Uncommitted] = {}
        self._expected: dict[int, Callable[[], None]] = {}
        self._tickets = count()

    def expect(self, completed: Callable[[], None]) -> int:
        """Return a ticket for the caller's own appends; `completed` is called when they are settled, or have failed."""
        ticket = next(self._tickets)
        self._expected[ticket] = completed
        return ticket

    def forget(self, ticket: int) -> None:
        """Remove a ticket that no append uses."""
        del self._expected[ticket]

    def committed(self, log: PartitionLog, end_offset: int, then: Callable[[], None]) -> Reply | None:
        """Return None if all records below `end_offset` are committed; otherwise a reply that completes on commit.

        The reply fails with a `NotCoordinatorError` if it cannot be committed. `then` is called after the reply.
        """
        if log.has_completed(end_offset):
            return None
        ticket, committed = next(self._tickets), Reply()
        self._uncommitted[ticket] = _Uncommitted(log, end_offset, committed, then)
        log.complete(end_offset, ticket)
        return committed

    def append_completed(self, ticket: int) -> None:
        """Process the end of an append's sync, successful or not: complete its replies."""
        expected = self._expected.pop(ticket, None)
        if expected is not None:
            expected()
            return
        log, end_offset, committed, then = self._uncommitted.pop(ticket)
        if log.has_completed(end_offset):
            committed(None, None)
        else:
            committed(None, NotCoordinatorError("the log could not be synced"))
        then()
