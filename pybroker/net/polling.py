"""Whether the loop looks for the next event without sleep, after it has worked on what there was.

Owns that decision. A core that sleeps takes tens of microseconds to wake: as long as a small request takes. Looking
costs a core's time, and others on the loop wait meanwhile. So it is done for a moment only, and only after events that
others have followed at once of late: a commit comes after a commit, and nothing after a heartbeat. Must not know what
an event is.
"""

from __future__ import annotations

Kind = int | str
"""A kind of event: the API key of a request, or the name of another event's class. There are as many as Kafka has APIs:
the data plane refuses keys that it does not know, and the versions that a peer may make up are no kinds."""

_MOST_CREDIT = 8
"""Looks after an event that may find nothing, after a time in which all found something."""
_TRIAL_EVERY = 32
"""Events from one trial to the next while looks after them do not pay."""


class Polling:
    """Looks for `most_us` microseconds at most, 0 for never. Keeps a number for each kind of event."""

    def __init__(self, most_us: int) -> None:
        self._most_us = most_us
        # By the kind of an event: looks that may find nothing; below zero, so many events have to come before a trial.
        self._credits: dict[Kind, int] = {}

    def next_us(self, last: Kind) -> int:
        """Return for how long to look after an event of this kind, in microseconds; 0 for not at all."""
        credit = self._credits.get(last, 0)
        if credit < 0:
            self._credits[last] = credit + 1
            return 0
        return self._most_us

    def note(self, last: Kind, *, found: bool) -> None:
        """Take into account whether the look after an event of this kind has found one."""
        credit = self._credits.get(last, 0)
        if found:
            self._credits[last] = min(credit + 1, _MOST_CREDIT)
        else:
            self._credits[last] = credit - 1 if credit > 1 else -_TRIAL_EVERY
