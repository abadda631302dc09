"""Timing of elections: the length of a tick, and the backoff between two campaigns.

Owns the interpretation of the election settings (`docs/adr/0083-the-times-of-an-election.md`). Must not know clocks.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from pybroker.controller.quorum.voter import ELECTION_TICKS

if TYPE_CHECKING:
    from pybroker.controller.quorum.settings import QuorumSettings

_AGAIN_S = 0.1
_CLOSE_TRIES = 3
"""The first campaigns follow each other closely, as a voter is often only slightly late; then the backoff doubles."""
_SHORTEST_TICK_S = 0.001


def tick_seconds(settings: QuorumSettings, *, knows_leader: bool) -> float:
    """Return the time between ticks. An election begins after `ELECTION_TICKS` of them, or up to twice as many.

    A leader may be silent for the fetch timeout at most; the earliest election is after half of it. Without a leader
    the election timeout is the minimum.
    """
    shortest_ms = settings.fetch_timeout_ms / 2 if knows_leader else settings.election_timeout_ms
    return max(shortest_ms / 1000 / ELECTION_TICKS, _SHORTEST_TICK_S)


def election_pause_s(tries: int, longest_ms: int) -> float:
    """Return the random backoff after this many campaigns: the first ones are short, later ones double."""
    growth: int = 2 ** max(tries - _CLOSE_TRIES, 0)
    return min(random.uniform(_AGAIN_S, 2 * _AGAIN_S) * growth, longest_ms / 1000)
