"""What Admin takes and gives about the metadata quorum and the cluster's features. Plain values, no behaviour."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
"""Which way a `FeatureUpdate` may go: up; down where nothing is lost; down in any case."""


class RaftEndpoint(Struct, frozen=True):
    """Where a node of the quorum is reached."""

    listener: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener}://{host}:{self.port}"


class QuorumReplica(Struct, frozen=True):
    """How far a voter or an observer has come; times in ms since 1970, None where they are not known."""

    node_id: int
    directory_id: bytes
    """Id of the directory of its metadata log; zeros where it is not known."""
    end_offset: int
    last_fetch_ms: int | None
    last_caught_up_ms: int | None


class QuorumDescription(Struct, frozen=True):
    """Who votes about the metadata log, who only reads it, and how far each has come."""

    leader_id: int
    """-1: nobody leads."""
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    endpoints: Mapping[int, tuple[RaftEndpoint, ...]]
    """Listeners by node, of those nodes of which they are known; none from a cluster before Kafka 3.9."""


class FeatureUpdate(Struct, frozen=True):
    """A level to give a feature, 0 to remove it, and which way that may go."""

    level: int
    upgrade_type: int = UPGRADE
