"""Events of a member of a streams group (KIP-1071), beside those of `events` and `heartbeat_events`, and its tasks.

Owns the types only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pybroker.client.membership.rebalance_step import RebalanceStep


class GroupTask(NamedTuple):
    """A task of a streams group: a subtopology over one partition of each of its topics."""

    subtopology: str
    partition: int


@dataclass(frozen=True, slots=True)
class GroupTasks:
    """The tasks of one member, by role."""

    active: frozenset[GroupTask] = frozenset()
    standby: frozenset[GroupTask] = frozenset()
    warmup: frozenset[GroupTask] = frozenset()


class StreamsJoined(NamedTuple):
    """The program joins the group."""


class TasksReconciled(NamedTuple):
    """The program has completed a rebalance step."""

    step: RebalanceStep
    tasks: GroupTasks
    """The tasks that the step was built from."""


class ShutdownRequested(NamedTuple):
    """The program requests the shutdown of all members of the group."""
