"""The interface of a member's state machine: that of `pybroker.machine.machine`, as far as it applies to a client.

Owns `handle` and `apply`, and the type between them. `handle` decides and changes nothing; `apply` changes and
decides nothing; time is an argument. A member is not persisted, so there are no records: `apply` takes the whole
membership. There are no drafts, since nothing can fail between the two, no timers, since a driver polls when
something is due, and no delayed replies. Must not know any protocol.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from pybroker.client.membership.rebalance_step import Remedy

Membership = TypeVar("Membership")


class Outcome(NamedTuple, Generic[Membership]):
    """The machine's decision about one event. It has no effect until it is applied."""

    membership: Membership
    """The new membership; immutable once it is returned."""
    remedy: Remedy
    """The driver's reaction to a response, before it checks the machine again."""


class MemberMachine(Protocol[Membership]):
    """A member that only `apply` changes. Times are seconds of any monotonic clock."""

    def handle(self, event: Any, now: float) -> Outcome[Membership]:
        """Decide about an event; changes nothing, also when it raises."""

    def apply(self, membership: Membership) -> None:
        """Make the membership that `handle` returned the current one."""
