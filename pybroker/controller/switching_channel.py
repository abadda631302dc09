"""The controller as a node of a cluster reaches it: its own while it leads the quorum, another's otherwise.

Owns the choice, for each request anew. Must not know how either is asked. Where the node's own controller resigns while
it decides, the request goes on to the next one. What handlers ask for on behalf of clients is decided here or not at
all: `pybroker/net/forwarding.py` forwards those requests as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from pybroker.controller.errors import NotControllerError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from pybroker.controller.channel import QuorumState
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
    from pybroker.controller.forwarding_channel import ForwardingChannel
    from pybroker.controller.local_channel import LocalChannel
    from pybroker.controller.quorum.voter_set import VoterNode
    from pybroker.metadata.image import AccessControlEntry, DelegationToken
    from pybroker.metadata.in_sync import InSyncChange, InSyncResult
    from pybroker.security.acl_filter import Filter

Reply = TypeVar("Reply")


class SwitchingChannel:
    """A `ControllerChannel`, and what brokers ask, by the way that leads to the active controller. Used from one loop.

    Coroutines raise `NotControllerError` for what only an active controller here decides, and `ControllerTimeoutError`
    where another does not answer.
    """

    def __init__(
        self,
        remote: ForwardingChannel,
        leader_id: Callable[[], int],
        local: LocalChannel | None = None,
        leads: Callable[[], bool] = lambda: False,
    ) -> None:
        """`local` is None for a node without a controller; `leads` returns whether it is the active one."""
        self._remote = remote
        self._leader_id = leader_id
        self._local = local
        self._leads = leads

    @property
    def leader_id(self) -> int:
        """Node id of the quorum's leader as far as it is known here, -1 for none."""
        return self._leader_id()

    def quorum_state(self) -> QuorumState:
        """Return the state of the quorum; raises `NotControllerError` where only its leader knows it."""
        return self._here().quorum_state()

    async def create_topics(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> list[CreatedTopic]:
        """Create topics; each succeeds or fails by itself, results in the order of `topics`."""
        return await self._ask(lambda channel: channel.create_topics(topics, validate_only=validate_only))

    async def create_partitions(
        self, topics: Sequence[MorePartitions], *, validate_only: bool = False
    ) -> list[EnlargedTopic]:
        """Give topics more partitions; each succeeds or fails by itself, results in the order of `topics`."""
        return await self._here().create_partitions(topics, validate_only=validate_only)

    async def delete_topics(self, topics: Sequence[str | bytes]) -> list[DeletedTopic]:
        """Delete topics by name or 16-byte id; results in the order of `topics`."""
        return await self._here().delete_topics(topics)

    async def elect_leaders(
        self, election_type: ElectionType, partitions: Sequence[tuple[str, Sequence[int]]] | None
    ) -> list[ElectedTopic] | Result:
        """Elect leaders of partitions, None for all; each succeeds or fails by itself, unless all are refused."""
        return await self._here().elect_leaders(election_type, partitions)

    async def alter_reassignments(
        self, topics: Sequence[ReassignableTopic], *, allow_replication_factor_change: bool = True
    ) -> list[ReassignedTopic]:
        """Give partitions other replicas, or cancel that; each succeeds or fails by itself, results in their order."""
        return await self._here().alter_reassignments(
            topics, allow_replication_factor_change=allow_replication_factor_change
        )

    async def list_reassignments(self, partitions: Sequence[tuple[str, Sequence[int]]] | None) -> list[OngoingTopic]:
        """Return what is being reassigned of these partitions by topic, None for all."""
        return await self._here().list_reassignments(partitions)

    async def alter_configs(
        self, changes: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> list[ConfigResult]:
        """Set and delete configurations of topics, brokers and groups; each resource succeeds or fails by itself."""
        return await self._here().alter_configs(changes, validate_only=validate_only)

    async def update_features(self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False) -> Result:
        """Finalize feature levels, all or none."""
        return await self._here().update_features(updates, validate_only=validate_only)

    async def alter_scram_users(
        self, deletions: Sequence[ScramDeletion], upsertions: Sequence[ScramUpsertion]
    ) -> list[AlteredUser]:
        """Change credentials of users; each succeeds or fails by itself."""
        return await self._here().alter_scram_users(deletions, upsertions)

    async def alter_client_quotas(
        self, alterations: Sequence[QuotaAlteration], *, validate_only: bool = False
    ) -> list[AlteredQuotas]:
        """Change limits of users, clients and addresses; each entity succeeds or fails by itself, and is named once."""
        return await self._here().alter_client_quotas(alterations, validate_only=validate_only)

    async def create_acls(self, entries: Sequence[AccessControlEntry]) -> list[Result]:
        """Make access control entries; each succeeds or fails by itself, results in their order."""
        return await self._here().create_acls(entries)

    async def delete_acls(self, filters: Sequence[Filter]) -> list[DeletedAcls]:
        """Delete the access control entries that filters match; results in the order of `filters`."""
        return await self._here().delete_acls(filters)

    async def create_token(
        self, owner: str, requester: str, renewers: Sequence[str], max_lifetime_ms: int, wall_ms: int
    ) -> DelegationToken | Result:
        """Make a delegation token, or return why there is none; `wall_ms` is the time of day."""
        return await self._here().create_token(owner, requester, renewers, max_lifetime_ms, wall_ms)

    async def renew_token(self, token_id: str, principal: str, period_ms: int, wall_ms: int) -> TokenEnd:
        """Have a delegation token live longer, as `principal` asks."""
        return await self._here().renew_token(token_id, principal, period_ms, wall_ms)

    async def expire_token(self, token_id: str, principal: str, period_ms: int, wall_ms: int) -> TokenEnd:
        """Have a delegation token end, as `principal` asks."""
        return await self._here().expire_token(token_id, principal, period_ms, wall_ms)

    async def unregister_broker(self, broker_id: int) -> Result:
        """Forget a broker."""
        return await self._here().unregister_broker(broker_id)

    async def add_voter(self, voter: VoterNode, timeout_ms: int, *, waits: bool = True) -> Result:
        """Have a controller vote once it has all of the metadata log; `waits`: return when that is committed."""
        return await self._here().add_voter(voter, timeout_ms, waits=waits)

    async def remove_voter(self, node_id: int, directory_id: bytes) -> Result:
        """Have a controller vote no more."""
        return await self._here().remove_voter(node_id, directory_id)

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
        """Register this broker."""
        return await self._ask(
            lambda channel: channel.register_broker(
                broker_id,
                incarnation_id=incarnation_id,
                listeners=listeners,
                security_protocols=security_protocols,
                rack=rack,
                log_dirs=log_dirs,
                features=features,
                fenced=fenced,
                previous_broker_epoch=previous_broker_epoch,
            )
        )

    async def heartbeat(
        self, broker_id: int, broker_epoch: int, *, want_fence: bool = False, want_shut_down: bool = False
    ) -> HeartbeatResult:
        """Say that this broker is alive, and what it wants."""
        return await self._ask(
            lambda channel: channel.heartbeat(
                broker_id, broker_epoch, want_fence=want_fence, want_shut_down=want_shut_down
            )
        )

    async def fail_log_directories(self, broker_id: int, broker_epoch: int, directories: Sequence[bytes]) -> Result:
        """Report log directories that have failed."""
        return await self._ask(lambda channel: channel.fail_log_directories(broker_id, broker_epoch, directories))

    async def assign_replicas(
        self, broker_id: int, broker_epoch: int, directories: Mapping[tuple[bytes, int], bytes]
    ) -> Result:
        """Report in which log directories this broker has put replicas, by topic id and partition."""
        return await self._ask(lambda channel: channel.assign_replicas(broker_id, broker_epoch, directories))

    async def allocate_producer_ids(self, broker_id: int, broker_epoch: int) -> range:
        """Return a block of producer ids that is this broker's alone."""
        return await self._ask(lambda channel: channel.allocate_producer_ids(broker_id, broker_epoch))

    async def alter_partitions(
        self, broker_id: int, broker_epoch: int, changes: Sequence[InSyncChange]
    ) -> list[InSyncResult]:
        """Ask for other in-sync replicas; what became of each change, in their order."""
        return await self._ask(lambda channel: channel.alter_partitions(broker_id, broker_epoch, changes))

    async def register_controller(
        self,
        controller_id: int,
        *,
        incarnation_id: bytes,
        listeners: Mapping[str, tuple[str, int]],
        security_protocols: Mapping[str, int],
        features: Mapping[str, tuple[int, int]],
    ) -> Result:
        """Register this node as a controller."""
        return await self._ask(
            lambda channel: channel.register_controller(
                controller_id,
                incarnation_id=incarnation_id,
                listeners=listeners,
                security_protocols=security_protocols,
                features=features,
            )
        )

    def _here(self) -> LocalChannel:
        if self._local is None or not self._leads():
            raise NotControllerError("this node does not lead the metadata quorum")
        return self._local

    async def _ask(self, ask: Callable[[LocalChannel | ForwardingChannel], Awaitable[Reply]]) -> Reply:
        if self._local is not None and self._leads():
            try:
                return await ask(self._local)
            except NotControllerError:  # another was elected meanwhile
                return await ask(self._remote)
        return await ask(self._remote)
