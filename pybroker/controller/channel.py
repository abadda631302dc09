"""The state of the metadata quorum, as its leader reports it.

Must not contain behaviour.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.controller.quorum.voters.voter_set import VoterEndpoint


class QuorumReplica(msgspec.Struct, frozen=True):
    """How far a voter or an observer has come."""

    node_id: int
    directory_id: bytes
    """Zeros where it is not known."""
    log_end_offset: int
    """-1 where it is not known."""
    last_fetch_ms: int
    """When it last sent something, ms since 1970; -1 for never."""
    last_caught_up_ms: int
    """When it last had all that the leader had, ms since 1970; -1 for never."""


class QuorumState(msgspec.Struct, frozen=True):
    """Who leads the quorum, since when, and how far its log goes."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    """End of what is committed."""
    log_end_offset: int
    voters: tuple[QuorumReplica, ...] = ()
    observers: tuple[QuorumReplica, ...] = ()
    endpoints: Mapping[int, tuple[VoterEndpoint, ...]] = {}
    """Listeners of the voters by node id, as far as they are known."""
