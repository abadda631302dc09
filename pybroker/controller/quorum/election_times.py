"""When a voter stands for election: how long a tick is, and how long it pauses between two tries.

Owns what the settings of elections mean (`docs/adr/0083-the-times-of-an-election.md`). Must not know clocks.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from pybroker.controller.quorum.voter import ELECTION_TICKS

if TYPE_CHECKING:
    from pybroker.controller.quorum.settings import QuorumSettings

_AGAIN_S = 0.1
_CLOSE_TRIES = 3
"""So many tries of an election follow each other closely, as mostly a voter was late by little; then pauses double."""
_SHORTEST_TICK_S = 0.001


def tick_seconds(settings: QuorumSettings, *, knows_leader: bool) -> float:
    """Return the time from one tick to the next: after `ELECTION_TICKS` of them, or twice as many, an election begins.

    A leader may be silent for the fetch timeout at most, and is waited for from half of it on; without one the
    election timeout is the shortest wait.
    """
    shortest_ms = settings.fetch_timeout_ms / 2 if knows_leader else settings.election_timeout_ms
    return max(shortest_ms / 1000 / ELECTION_TICKS, _SHORTEST_TICK_S)


def election_pause_s(tries: int, longest_ms: int) -> float:
    """Return the pause after so many tries of an election, at random: the first ones are short, later ones double."""
    growth: int = 2 ** max(tries - _CLOSE_TRIES, 0)
    return min(random.uniform(_AGAIN_S, 2 * _AGAIN_S) * growth, longest_ms / 1000)
