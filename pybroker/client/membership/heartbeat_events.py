"""Events of a member that sends heartbeats of KIP-848 or KIP-1071, beside those of `events`.

Owns the types only. Events of one protocol are in `modern_events` and `streams_events`.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from pybroker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from pybroker.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

HeartbeatRequest: TypeAlias = ConsumerGroupHeartbeatRequest | StreamsGroupHeartbeatRequest
HeartbeatResponse: TypeAlias = ConsumerGroupHeartbeatResponse | StreamsGroupHeartbeatResponse


class Stalled(NamedTuple):
    """The program did not poll for max.poll.interval.ms, and the coordinator was notified."""


class HeartbeatSent(NamedTuple):
    """A heartbeat is sent: the coordinator is taken to know its content, unless the request fails."""

    request: HeartbeatRequest


class HeartbeatLost(NamedTuple):
    """No response arrived: the next heartbeat contains the member's assignment, and its subscription, again."""


class HeartbeatCompleted(NamedTuple):
    """A response to a heartbeat of `epoch`."""

    epoch: int
    response: HeartbeatResponse
