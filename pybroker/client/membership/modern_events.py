"""What happens to a member of a group of KIP-848 beside what `events` lists.

Owns the shapes alone, and what a member wishes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pybroker.client.membership.rebalance_step import RebalanceStep
from pybroker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a member reports of itself, and again when it changes."""

    topics: tuple[str, ...] = ()
    regex: str | None = None
    assignor: str | None = None
    rack: str | None = None


class Subscribed(NamedTuple):
    """The program wants in, or wants something else."""

    wishes: Wishes


class StepDone(NamedTuple):
    """The program has done a rebalance step."""

    step: RebalanceStep
    names: Mapping[bytes, str]
    """Of topics, by id."""


class Stalled(NamedTuple):
    """The program was silent for too long, and the coordinator was sent so."""


class IdGiven(NamedTuple):
    """The coordinator has named the member's id."""

    member_id: str


class HeartbeatSent(NamedTuple):
    """A heartbeat leaves: what it says is known from now on, unless it fails."""

    request: ConsumerGroupHeartbeatRequest


class HeartbeatLost(NamedTuple):
    """No answer came: everything is sent again."""


class HeartbeatAnswered(NamedTuple):
    """An answer to a heartbeat that named `epoch`."""

    epoch: int
    answer: ConsumerGroupHeartbeatResponse
