"""The controller as handlers reach it: this node's own while it leads the quorum, or another's by way of a channel.

Owns what handlers may ask for. Must not know who answers. Every method returns after its records are committed and the
image that holds them is published here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pybroker.controller.cluster.acls import DeletedAcls
    from pybroker.controller.cluster.client_quotas import AlteredQuotas, QuotaAlteration
    from pybroker.controller.cluster.delegation_tokens import TokenEnd
    from pybroker.controller.cluster.events import (
        AlteredUser,
        ConfigChange,
        ConfigResult,
        CreatedTopic,
        DeletedTopic,
        ElectedTopic,
        ElectionType,
        EnlargedTopic,
        FeatureUpdate,
        HeartbeatResult,
        MorePartitions,
        NewTopic,
        OngoingTopic,
        ReassignableTopic,
        ReassignedTopic,
        RegisteredBroker,
        Result,
        ScramDeletion,
        ScramUpsertion,
    )
    from pybroker.controller.quorum.voter_set import VoterEndpoint, VoterNode
    from pybroker.metadata.image import AccessControlEntry, DelegationToken
    from pybroker.metadata.in_sync import InSyncChange, InSyncResult
    from pybroker.security.acl_filter import Filter


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


class ControllerChannel(Protocol):
    """A way to the controller. Its coroutines raise `NotControllerError` when there is none at the other end."""

    @property
    def leader_id(self) -> int:
        """Node id of the quorum's leader as far as it is known here, -1 for none."""

    def quorum_state(self) -> QuorumState:
        """Return the state of the quorum; raises `NotControllerError` where only its leader knows it."""

    async def create_topics(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> list[CreatedTopic]:
        """Create topics; each succeeds or fails by itself, results in the order of `topics`."""

    async def create_partitions(
        self, topics: Sequence[MorePartitions], *, validate_only: bool = False
    ) -> list[EnlargedTopic]:
        """Give topics more partitions; each succeeds or fails by itself, results in the order of `topics`."""

    async def delete_topics(self, topics: Sequence[str | bytes]) -> list[DeletedTopic]:
        """Delete topics by name or 16-byte id; results in the order of `topics`."""

    async def elect_leaders(
        self, election_type: ElectionType, partitions: Sequence[tuple[str, Sequence[int]]] | None
    ) -> list[ElectedTopic] | Result:
        """Elect leaders of partitions, None for all; each succeeds or fails by itself, unless all are refused."""

    async def alter_reassignments(
        self, topics: Sequence[ReassignableTopic], *, allow_replication_factor_change: bool = True
    ) -> list[ReassignedTopic]:
        """Give partitions other replicas, or cancel that; each succeeds or fails by itself, results in their order."""

    async def list_reassignments(self, partitions: Sequence[tuple[str, Sequence[int]]] | None) -> list[OngoingTopic]:
        """Return what is being reassigned of these partitions by topic, None for all."""

    async def alter_configs(
        self, changes: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> list[ConfigResult]:
        """Set and delete configurations of topics, brokers and groups; each resource succeeds or fails by itself."""

    async def update_features(self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False) -> Result:
        """Finalize feature levels, all or none."""

    async def alter_scram_users(
        self, deletions: Sequence[ScramDeletion], upsertions: Sequence[ScramUpsertion]
    ) -> list[AlteredUser]:
        """Change credentials of users; each succeeds or fails by itself."""

    async def alter_client_quotas(
        self, alterations: Sequence[QuotaAlteration], *, validate_only: bool = False
    ) -> list[AlteredQuotas]:
        """Change limits of users, clients and addresses; each entity succeeds or fails by itself, and is named once."""

    async def create_acls(self, entries: Sequence[AccessControlEntry]) -> list[Result]:
        """Make access control entries; each succeeds or fails by itself, results in their order."""

    async def delete_acls(self, filters: Sequence[Filter]) -> list[DeletedAcls]:
        """Delete the access control entries that filters match; results in the order of `filters`."""

    async def create_token(
        self, owner: str, requester: str, renewers: Sequence[str], max_lifetime_ms: int, wall_ms: int
    ) -> DelegationToken | Result:
        """Make a delegation token, or return why there is none; `wall_ms` is the time of day."""

    async def renew_token(self, token_id: str, principal: str, period_ms: int, wall_ms: int) -> TokenEnd:
        """Have a delegation token live longer, as `principal` asks."""

    async def expire_token(self, token_id: str, principal: str, period_ms: int, wall_ms: int) -> TokenEnd:
        """Have a delegation token end, as `principal` asks."""

    async def unregister_broker(self, broker_id: int) -> Result:
        """Forget a broker."""

    async def add_voter(self, voter: VoterNode, timeout_ms: int, *, waits: bool = True) -> Result:
        """Have a controller vote once it has all of the metadata log; `waits`: return when that is committed."""

    async def remove_voter(self, node_id: int, directory_id: bytes) -> Result:
        """Have a controller vote no more."""


class OwnController(ControllerChannel, Protocol):
    """The controller of this node, and what brokers and controllers ask of it while it leads the quorum."""

    async def alter_partitions(
        self, broker_id: int, broker_epoch: int, changes: Sequence[InSyncChange]
    ) -> list[InSyncResult]:
        """Change the in-sync replicas of partitions that a broker leads; what became of each, in their order."""

    async def register_broker(
        self,
        broker_id: int,
        *,
        incarnation_id: bytes,
        listeners: Mapping[str, tuple[str, int]],
        security_protocols: Mapping[str, int],
        rack: str | None = None,
        log_dirs: tuple[bytes, ...] = (),
        features: Mapping[str, tuple[int, int]] | None = None,
        fenced: bool = True,
        previous_broker_epoch: int = -1,
    ) -> RegisteredBroker:
        """Register a broker's new incarnation."""

    async def heartbeat(
        self,
        broker_id: int,
        broker_epoch: int,
        *,
        want_fence: bool = False,
        want_shut_down: bool = False,
        metadata_offset: int | None = None,
    ) -> HeartbeatResult:
        """Note that a broker is alive, and what it wants."""

    async def fail_log_directories(self, broker_id: int, broker_epoch: int, directories: Sequence[bytes]) -> Result:
        """Note that a broker has lost log directories."""

    async def assign_replicas(
        self, broker_id: int, broker_epoch: int, directories: Mapping[tuple[bytes, int], bytes]
    ) -> Result:
        """Note in which log directories a broker has put replicas, by topic id and partition."""

    async def allocate_producer_ids(self, broker_id: int, broker_epoch: int) -> range:
        """Give a broker a block of producer ids; raises `StaleBrokerEpochError`."""

    async def register_controller(
        self,
        controller_id: int,
        *,
        incarnation_id: bytes,
        listeners: Mapping[str, tuple[str, int]],
        security_protocols: Mapping[str, int],
        features: Mapping[str, tuple[int, int]],
    ) -> Result:
        """Register a controller's new incarnation."""
