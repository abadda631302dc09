"""What one voter of the metadata quorum is configured with."""

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
    """Where the controller listener of a voter is reached."""

    node_id: int
    host: str
    port: int
    directory_id: bytes = bytes(16)
    """Id of the directory of its metadata log; zeros where the configuration does not say it."""


class QuorumSettings(NamedTuple):
    """Who votes, and where this voter keeps its log."""

    directory: Path
    """Holds the directory of the metadata log, `__cluster_metadata-0`."""
    cluster_id: str
    node_id: int
    voters: tuple[int, ...]
    """Node ids of all voters as the configuration has them, this one among them; none where the log names them."""
    segment_bytes: int = SEGMENT_BYTES
    segment_ms: int = SEGMENT_MS
    addresses: tuple[VoterAddress, ...] = ()
    """Of the voters that the configuration names; this one's own may be missing."""
    directory_id: bytes = bytes(16)
    """Id of the directory that holds the log."""
    election_timeout_ms: int = ELECTION_TIMEOUT_MS
    """Without a leader an election begins after so long, or after twice as long at the latest."""
    election_backoff_max_ms: int = ELECTION_BACKOFF_MAX_MS
    """The longest pause between two tries of an election that did not wait for a timeout."""
    fetch_timeout_ms: int = FETCH_TIMEOUT_MS
    """An election begins after so long without word from a leader, or after half of it at the earliest."""
    request_timeout_ms: int = REQUEST_TIMEOUT_MS
    """A connection to another voter that is not open after so long is tried anew."""
    retry_backoff_ms: int = RETRY_BACKOFF_MS
    """The first pause before a connection is tried anew; later ones are longer."""
    snapshots: SnapshotPolicy = SnapshotPolicy()
    death_grace_ms: int = 0
    """An election begins so long after a leader's connection ended and its port refused another one; -1 for never."""

    endpoints: tuple[VoterEndpoint, ...] = ()
    """Where this node's listeners of controllers are reached."""
    bootstrap_servers: tuple[tuple[str, int], ...] = ()
    """Host and port of nodes that know the quorum, where the configuration does not name the voters."""
    auto_join: bool = False
    """Whether this node asks to vote when the log names other voters (KIP-1186)."""
    security: RenewedSecurity | None = None
    """What connections to other controllers are secured with, None for plaintext."""

    @property
    def configured(self) -> VoterSet:
        """The voters that the configuration names, none where the log does."""
        reached = {one.node_id: (VoterEndpoint("", one.host, one.port),) for one in self.addresses}
        return VoterSet.of(VoterNode(node_id, endpoints=reached.get(node_id, ())) for node_id in self.voters)
