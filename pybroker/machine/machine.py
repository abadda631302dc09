"""The interface of a state machine: Machine, Outcome, Timer, Parked.

Owns the types that a machine and the runner exchange. Records, events and replies are the machine's own types.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

Event = TypeVar("Event", contravariant=True)
Record = TypeVar("Record")
Reply = TypeVar("Reply")


class Timer(NamedTuple):
    """An event to be handled later. A timer under the same key replaces the one before it."""

    key: Hashable
    deadline_ms: int | None
    """When the timer expires, on the clock of `handle`'s `now`; None cancels it.

    Setting that clock does not move the timer.
    """
    event: Any = None
    if_absent: bool = False
    """Whether to keep a timer that is already set under the same key."""


class Delayed(msgspec.Struct, frozen=True):
    """Placeholder for a reply that is delayed until an outcome has an `DelayedReply` with the same key."""

    key: Hashable


class DelayedReply(NamedTuple):
    """The delayed reply to an event; ignored if no event waits under the key."""

    key: Hashable
    reply: Any


class Outcome(msgspec.Struct, Generic[Record, Reply], frozen=True, gc=False):
    """A machine's decision about one event. It takes effect when its records are committed.

    A struct, since one is made for each event: creating a named tuple takes three times as long.
    """

    records: tuple[Record, ...]
    """Committed atomically."""
    reply: Reply | Delayed
    """Passed to the callback of the event after the commit."""
    timers: tuple[Timer, ...] = ()
    """Set after the commit."""
    responses: tuple[DelayedReply, ...] = ()
    """Delayed replies, passed after the commit to the callbacks of the events that wait for them."""


class Machine(Protocol[Event, Record]):
    """A state that only records change.

    A machine may have `alone`, a set of event types. An event of such a type is handled and appended in a batch of its
    own, because the log may reject its records.
    """

    def handle(self, event: Event, now: int) -> Outcome[Record, Any]:
        """Return the decision about an event at `now` (milliseconds). Changes no state, even if it raises."""

    def apply(self, record: Record) -> None:
        """Apply a record to the state. `handle` of an equal state returned the record."""

    def draft(self) -> Machine[Event, Record]:
        """Return a copy of the machine, to be ended by either `keep` or `drop`.

        The runner makes a draft for each batch, so it must be cheap: share immutable state, or record the changes.
        Until the draft ends, no other code reads the original machine.
        """

    def keep(self) -> Machine[Event, Record]:
        """End this draft after the commit of the applied records, and return the machine in its state."""

    def drop(self) -> None:
        """End this draft and undo the applied records. The original machine is unchanged."""
