"""What happens to a member of a classic group beside what `events` lists.

Owns the shapes alone.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.membership.rebalance_step import RebalanceStep

Partitions: TypeAlias = frozenset[TopicPartition]


class Subscribed(NamedTuple):
    """The program wants in, or wants something else."""

    keeps: Partitions
    """What it has and still wants."""
    reason: str
    """Why it joins, for the coordinator's log (KIP-800)."""


class RejoinWanted(NamedTuple):
    """The assignment no longer fits the topics: ask for another."""

    reason: str


class StepDone(NamedTuple):
    """The program has done a rebalance step."""

    step: RebalanceStep


class HeartbeatSent(NamedTuple):
    """A Heartbeat leaves: the next is due an interval later."""


class HeartbeatAnswered(NamedTuple):
    """An answer to a Heartbeat that named `generation`."""

    code: int
    generation: int


class JoinAnswered(NamedTuple):
    """An answer to JoinGroup."""

    code: int
    member_id: str
    generation: int
    assignor: str | None
    """The protocol that the group has chosen."""


class SyncAnswered(NamedTuple):
    """An answer to SyncGroup of `generation`."""

    code: int
    generation: int
    assigned: Partitions
