"""Replicas that have said where they are reached and are none of the voters that are known here.

Owns who they are, how many, and until when they count. Must not know connections; time is an argument, in seconds. A
controller that does not vote yet announces itself again and again, and the leader sends it the log meanwhile; a leader
whose election is news to a replica is one as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pybroker.controller.quorum.voters.voter_set import VoterEndpoint

MOST = 32
"""Guests at a time; later ones wait until one is forgotten."""
STAY_S = 10.0
"""A guest that says nothing for so long is forgotten."""


class Guest(msgspec.Struct, frozen=True):
    """One replica."""

    node_id: int
    directory_id: bytes
    endpoint: VoterEndpoint
    seen_s: float


class Guests:
    """The guests of one node."""

    def __init__(self) -> None:
        self._guests: dict[int, Guest] = {}

    def greet(self, key: int, guest: Guest) -> bool:
        """Note a guest; return whether it is new here, or reached elsewhere than before."""
        before = self._guests.get(key)
        if before is None and len(self._guests) >= MOST:
            return False
        self._guests[key] = guest
        return before is None or before.endpoint != guest.endpoint

    def leave(self, now_s: float) -> list[int]:
        """Forget those who have said nothing for long, and return their keys."""
        gone = [key for key, guest in self._guests.items() if now_s - guest.seen_s > STAY_S]
        for key in gone:
            del self._guests[key]
        return gone

    @property
    def all(self) -> dict[int, Guest]:
        """The guests by key."""
        return self._guests
