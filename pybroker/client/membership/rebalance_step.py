"""The program's part of a rebalance, inside `poll`, and the driver's reactions to errors.

Owns these two types, which both protocols share.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from pybroker.client.administration.topics import TopicPartition


@dataclass(frozen=True, slots=True)
class RebalanceStep:
    """Partitions that the program revokes and takes over, in this order: lost, revoked, assigned."""

    lost: frozenset[TopicPartition] = frozenset()
    """They may be assigned to another member: offsets must not be committed for them."""
    revoked: frozenset[TopicPartition] = frozenset()
    """Assigned to this member until the step is done."""
    assigned: frozenset[TopicPartition] | None = None
    """New partitions; None where the group has not assigned any yet."""


class Remedy(Enum):
    """The driver's reaction to a response, before it checks the machine again."""

    NONE = auto()
    """Continue."""
    WAIT = auto()
    """Continue after retry.backoff.ms."""
    SEARCH = auto()
    """Find the coordinator again, after retry.backoff.ms."""
    FAIL = auto()
    """End the membership and report the failure to the program."""
