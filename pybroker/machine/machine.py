"""The shape of a state machine: Machine, Outcome, Timer, Parked.

Owns the vocabulary between a machine and the runner. Records, events and replies are the machine's own types.
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
    """When, on the clock of the `now` of `handle`, as it goes now: setting that clock moves no timer. None cancels."""
    event: Any = None
    if_absent: bool = False
    """Whether a timer that is set already under the same key stays as it is."""


class Parked(msgspec.Struct, frozen=True):
    """In place of a reply: the reply comes later, by the `Answer` of this or another outcome under the same key."""

    key: Hashable


class Answer(NamedTuple):
    """A reply to an event that was parked; where nothing is parked under the key, nothing happens."""

    key: Hashable
    reply: Any


class Outcome(msgspec.Struct, Generic[Record, Reply], frozen=True, gc=False):
    """What a machine decided about one event. Nothing of it holds until the records are committed.

    One is made for each event, and a struct costs a third of what a tuple with names does.
    """

    records: tuple[Record, ...]
    """Committed all together or not at all."""
    reply: Reply | Parked
    """Passed to the callback of the event, after the commit."""
    timers: tuple[Timer, ...] = ()
    """Set after the commit."""
    answers: tuple[Answer, ...] = ()
    """Passed after the commit, to the callbacks of the events that were parked."""


class Machine(Protocol[Event, Record]):
    """A state that only records change.

    A machine may have `alone`, a set of types: an event of one of them is decided and appended without others. They
    are for records that the log may refuse for their own sake.
    """

    def handle(self, event: Event, now: int) -> Outcome[Record, Any]:
        """Decide about an event at `now` (milliseconds); changes nothing, also when it raises."""

    def apply(self, record: Record) -> None:
        """Change the state as the record says; the record was decided on by `handle` of an equal state."""

    def draft(self) -> Machine[Event, Record]:
        """Return a machine of the same state, which ends with either its `keep` or its `drop`.

        A draft is made for each wake-up of the runner, so it has to be cheap: share what is immutable, or note down
        what is changed. Until it ends, no other code reads the machine that it was made of.
        """

    def keep(self) -> Machine[Event, Record]:
        """End this draft: what was applied is committed. Return the machine of its state."""

    def drop(self) -> None:
        """End this draft: what was applied is undone. The machine that it was made of is as it was."""
