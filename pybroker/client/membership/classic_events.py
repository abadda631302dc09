"""Events of a member of a classic group, beside those of `events`.

Owns the types only.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.membership.rebalance_step import RebalanceStep

Partitions: TypeAlias = frozenset[TopicPartition]


class Subscribed(NamedTuple):
    """The program subscribes, or changes its subscription."""

    keeps: Partitions
    """The partitions that it has and that are still subscribed."""
    reason: str
    """The reason for joining, for the coordinator's log (KIP-800)."""


class RejoinWanted(NamedTuple):
    """The assignment does not fit the topics any more: request another."""

    reason: str


class StepDone(NamedTuple):
    """The program has completed a rebalance step."""

    step: RebalanceStep


class HeartbeatSent(NamedTuple):
    """A Heartbeat is sent: the next is due an interval later."""


class HeartbeatCompleted(NamedTuple):
    """A response to a Heartbeat of `generation`."""

    code: int
    generation: int


class JoinCompleted(NamedTuple):
    """A response to JoinGroup."""

    code: int
    member_id: str
    generation: int
    assignor: str | None
    """The protocol that the group has chosen."""


class SyncCompleted(NamedTuple):
    """A response to SyncGroup of `generation`."""

    code: int
    generation: int
    assigned: Partitions
