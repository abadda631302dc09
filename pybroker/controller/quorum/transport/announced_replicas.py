"""Replicas that have announced their endpoints and that this node does not know as voters.

Owns their endpoints, their maximum number, and their expiry. Must not know connections; time is an argument, in
seconds. A controller that does not vote yet announces itself periodically, and the leader sends it the log. A leader
that a replica does not know as a voter yet is also such a replica.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pybroker.controller.quorum.voters.voter_set import VoterEndpoint

MOST = 32
"""Maximum number of these replicas; others wait until one expires."""
STAY_S = 10.0
"""Such a replica expires after this time without an announcement."""


class AnnouncedReplica(msgspec.Struct, frozen=True):
    """One replica and its endpoint."""

    node_id: int
    directory_id: bytes
    endpoint: VoterEndpoint
    seen_s: float


class AnnouncedReplicas:
    """The announced replicas of one node."""

    def __init__(self) -> None:
        self._announced: dict[int, AnnouncedReplica] = {}

    def greet(self, key: int, replica: AnnouncedReplica) -> bool:
        """Record a replica; return whether the replica or its endpoint is new."""
        before = self._announced.get(key)
        if before is None and len(self._announced) >= MOST:
            return False
        self._announced[key] = replica
        return before is None or before.endpoint != replica.endpoint

    def leave(self, now_s: float) -> list[int]:
        """Remove the expired replicas, and return their keys."""
        removed = [key for key, replica in self._announced.items() if now_s - replica.seen_s > STAY_S]
        for key in removed:
            del self._announced[key]
        return removed

    @property
    def all(self) -> dict[int, AnnouncedReplica]:
        """The replicas by key."""
        return self._announced
