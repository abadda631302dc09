"""Events of a member of a group of KIP-848, beside those of `events` and `heartbeat_events`.

Owns the types only, and the subscription of a member.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pybroker.client.membership.rebalance_step import RebalanceStep


@dataclass(frozen=True, slots=True)
class GroupSubscription:
    """The subscription of a member, which is sent again when it changes."""

    topics: tuple[str, ...] = ()
    regex: str | None = None
    assignor: str | None = None
    rack: str | None = None


class Subscribed(NamedTuple):
    """The program subscribes, or changes its subscription."""

    subscription: GroupSubscription


class StepDone(NamedTuple):
    """The program has completed a rebalance step."""

    step: RebalanceStep
    names: Mapping[bytes, str]
    """Topic names by id."""


class IdGiven(NamedTuple):
    """The coordinator has assigned the member id."""

    member_id: str
