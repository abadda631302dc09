"""What a rebalance asks of the program, inside `poll`; and what an error asks of the membership driver.

Owns these two vocabularies, which both protocols share.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from pybroker.client.administration.topics import TopicPartition


@dataclass(frozen=True, slots=True)
class RebalanceStep:
    """Partitions to give up and to take, in this order: lost, revoked, assigned."""

    lost: frozenset[TopicPartition] = frozenset()
    """Already another member's, perhaps: nothing may be committed for them."""
    revoked: frozenset[TopicPartition] = frozenset()
    """Still ours until the step is done."""
    assigned: frozenset[TopicPartition] | None = None
    """New ones; None where the group has not assigned anything yet."""


class Remedy(Enum):
    """What to do about an answer before the machine is asked again."""

    NONE = auto()
    """Go on."""
    WAIT = auto()
    """Go on after retry.backoff.ms."""
    SEARCH = auto()
    """Look for the coordinator again, after retry.backoff.ms."""
    FAIL = auto()
    """Give up and report the failure to the program."""
