"""The shape of a state machine: Machine, Outcome, Timer.

Owns the vocabulary between a machine and the runner. Records, events and replies are the machine's own types.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, Protocol, TypeVar

Event = TypeVar("Event", contravariant=True)
Record = TypeVar("Record")
Reply = TypeVar("Reply")


class Timer(NamedTuple):
    """An event to be handled later. A timer under the same key replaces the one before it."""

    key: str
    deadline_ms: int | None
    """When, on the clock that `handle` is told; None cancels the timer."""
    event: Any = None


class Outcome(NamedTuple, Generic[Record, Reply]):
    """What a machine decided about one event. Nothing of it holds until the records are committed."""

    records: tuple[Record, ...]
    """Committed all together or not at all."""
    reply: Reply
    """Told to whoever submitted the event, after the commit."""
    timers: tuple[Timer, ...] = ()
    """Set after the commit."""


class Machine(Protocol[Event, Record]):
    """A state that only records change."""

    def handle(self, event: Event, now: int) -> Outcome[Record, Any]:
        """Decide about an event at `now` (milliseconds); changes nothing, also when it raises."""

    def apply(self, record: Record) -> None:
        """Change the state as the record says; the record was decided on by `handle` of an equal state."""

    def draft(self) -> Machine[Event, Record]:
        """Return a machine of the same state; what is applied to either is not seen in the other.

        A draft is made for each wake-up of the runner, so it has to be cheap: share what is immutable.
        """
