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
    """Replication progress of a voter or an observer."""

    node_id: int
    directory_id: bytes
    """All zeros if unknown."""
    log_end_offset: int
    """-1 if unknown."""
    last_fetch_ms: int
    """When it last sent a message, ms since 1970; -1 for never."""
    last_caught_up_ms: int
    """When its log last reached the leader's log end offset, ms since 1970; -1 for never."""


class QuorumState(msgspec.Struct, frozen=True):
    """The quorum's leader, its epoch, the high watermark and the progress of the replicas."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    """First offset that is not committed."""
    log_end_offset: int
    voters: tuple[QuorumReplica, ...] = ()
    observers: tuple[QuorumReplica, ...] = ()
    endpoints: Mapping[int, tuple[VoterEndpoint, ...]] = {}
    """Known listeners of the voters, by node id."""
