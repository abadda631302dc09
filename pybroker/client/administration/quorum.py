"""The metadata quorum and the features of the cluster in Admin's arguments and results. Plain values, no behaviour."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
"""Allowed direction of a `FeatureUpdate`: upgrade, downgrade without loss of metadata, or any downgrade."""


class RaftEndpoint(Struct, frozen=True):
    """The address of a node of the quorum."""

    listener: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener}://{host}:{self.port}"


class QuorumReplica(Struct, frozen=True):
    """Progress of a voter or an observer; times in ms since 1970, None where they are unknown."""

    node_id: int
    directory_id: bytes
    """Id of its metadata log directory; zeros where it is unknown."""
    end_offset: int
    last_fetch_ms: int | None
    last_caught_up_ms: int | None


class QuorumDescription(Struct, frozen=True):
    """The voters and observers of the metadata log, and the progress of each."""

    leader_id: int
    """-1: there is no leader."""
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    endpoints: Mapping[int, tuple[RaftEndpoint, ...]]
    """Listeners by node, where they are known; empty from a cluster before Kafka 3.9."""


class FeatureUpdate(Struct, frozen=True):
    """A new level of a feature, 0 to remove it, and the allowed direction of the change."""

    level: int
    upgrade_type: int = UPGRADE
