"""The shape of a member's machine: that of `pybroker.machine.machine`, as far as it applies to a client.

Owns the two verbs and what they exchange. `handle` reads and decides, and changes nothing; `apply` changes, and decides
nothing; time is an argument. Nothing of a member is written down, so there are no records: what `apply` takes is the
membership as a whole. Nothing can fail between the two, so there are no drafts. There are no timers, as a driver asks a
machine when something is due, and no parked replies. Must not know either protocol.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from pybroker.client.membership.rebalance_step import Remedy

Membership = TypeVar("Membership")


class Outcome(NamedTuple, Generic[Membership]):
    """What a machine decided about one event. Nothing of it holds until it is applied."""

    membership: Membership
    """As it is from now on; never written after it is made."""
    remedy: Remedy
    """What the driver does about an answer before it asks the machine again."""


class MemberMachine(Protocol[Membership]):
    """A member that only decided memberships change. Times are seconds of any clock that only goes forward."""

    def handle(self, event: Any, now: float) -> Outcome[Membership]:
        """Decide about an event; changes nothing, also when it raises."""

    def apply(self, membership: Membership) -> None:
        """Take a membership that `handle` has decided on."""
