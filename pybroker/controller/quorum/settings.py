"""The configuration of one voter of the metadata quorum."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pybroker.controller.quorum.snapshot.snapshot_policy import SnapshotPolicy
from pybroker.controller.quorum.voters.voter_set import VoterEndpoint, VoterNode, VoterSet

if TYPE_CHECKING:
    from pathlib import Path

    from pybroker.client.security.renewed import RenewedSecurity

SEGMENT_BYTES = 1 << 30
"""Kafka's default of metadata.log.segment.bytes."""
SEGMENT_MS = 7 * 24 * 3600 * 1000
"""Kafka's default of metadata.log.segment.ms."""
ELECTION_TIMEOUT_MS = 1000
"""Kafka's default of controller.quorum.election.timeout.ms."""
ELECTION_BACKOFF_MAX_MS = 1000
"""Kafka's default of controller.quorum.election.backoff.max.ms."""
FETCH_TIMEOUT_MS = 2000
"""Kafka's default of controller.quorum.fetch.timeout.ms."""
REQUEST_TIMEOUT_MS = 2000
"""Kafka's default of controller.quorum.request.timeout.ms."""
RETRY_BACKOFF_MS = 20
"""Kafka's default of controller.quorum.retry.backoff.ms."""


class VoterAddress(msgspec.Struct, frozen=True):
    """The controller listener of a voter."""

    node_id: int
    host: str
    port: int
    directory_id: bytes = bytes(16)
    """Id of its metadata log's directory; zeros if the configuration does not contain it."""


class QuorumSettings(NamedTuple):
    """The voters, and the directory of this voter's log."""

    directory: Path
    """Parent of the metadata log's directory, `__cluster_metadata-0`."""
    cluster_id: str
    node_id: int
    voters: tuple[int, ...]
    """Node ids of all configured voters, including this one; empty if the log contains the voter set."""
    segment_bytes: int = SEGMENT_BYTES
    segment_ms: int = SEGMENT_MS
    addresses: tuple[VoterAddress, ...] = ()
    """Addresses of the configured voters; this node's own may be missing."""
    directory_id: bytes = bytes(16)
    """Id of the log's directory."""
    election_timeout_ms: int = ELECTION_TIMEOUT_MS
    """Minimum time without a leader until an election; randomized up to twice as long."""
    election_backoff_max_ms: int = ELECTION_BACKOFF_MAX_MS
    """Maximum backoff between two campaigns that do not wait for a timeout."""
    fetch_timeout_ms: int = FETCH_TIMEOUT_MS
    """Maximum time without a message from the leader until an election; the minimum is half of it."""
    request_timeout_ms: int = REQUEST_TIMEOUT_MS
    """Timeout for opening a connection to another voter; then it is retried."""
    retry_backoff_ms: int = RETRY_BACKOFF_MS
    """The first backoff before a connection is retried; later ones are longer."""
    snapshots: SnapshotPolicy = SnapshotPolicy()
    death_grace_ms: int = 0
    """Time from a leader's closed connection and refused port to an election; -1 for never."""

    endpoints: tuple[VoterEndpoint, ...] = ()
    """Endpoints of this node's controller listeners."""
    bootstrap_servers: tuple[tuple[str, int], ...] = ()
    """Host and port of nodes that know the quorum, if no voters are configured."""
    auto_join: bool = False
    """Whether this node requests to become a voter if the log has other voters (KIP-1186)."""
    security: RenewedSecurity | None = None
    """Security of connections to other controllers, None for plaintext."""

    @property
    def configured(self) -> VoterSet:
        """The configured voters, empty if the log contains the voter set."""
        reached = {one.node_id: (VoterEndpoint("", one.host, one.port),) for one in self.addresses}
        return VoterSet.of(VoterNode(node_id, endpoints=reached.get(node_id, ())) for node_id in self.voters)
