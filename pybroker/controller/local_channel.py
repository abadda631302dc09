"""The channel to the controller in this process: requests of handlers and of this broker become events of its machine.

Owns the translation, including random values in events, and the splitting of large requests. Must not know wire
requests: handlers translate those.
"""

from __future__ import annotations

import base64
import os
from collections import Counter
from typing import TYPE_CHECKING, cast

import msgspec

from pybroker.controller.cluster.acls import CreateAcls, DeleteAcls
from pybroker.controller.cluster.brokers import session_key
from pybroker.controller.cluster.client_quotas import AlterClientQuotas, one_of_each
from pybroker.controller.cluster.delegation_tokens import CreateToken, ExpireToken, RenewToken
from pybroker.controller.cluster.events import (
    AllocateProducerIds,
    AlterConfigs,
    AlterPartitions,
    AlterReassignments,
    AlterScramUsers,
    AssignReplicas,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    ElectLeaders,
    Heartbeat,
    ListReassignments,
    LogDirectoriesFailed,
    ReassignedTopic,
    RegisterBroker,
    RegisterController,
    Result,
    UnregisterBroker,
    UpdateFeatures,
)
from pybroker.controller.cluster.whole_requests import whole_creation, whole_deletion, whole_enlargement
from pybroker.controller.errors import ControllerError, StaleBrokerEpochError
from pybroker.controller.former_isr import FormerIsr
from pybroker.machine.parts import parts
from pybroker.metadata.in_sync import InSyncResult
from pybroker.metadata.quotas import IP
from pybroker.protocol.errors import ErrorCode
from pybroker.security.host_names import unresolved_hosts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
        ReassignedPartition,
        RegisteredBroker,
        ScramDeletion,
        ScramUpsertion,
    )
    from pybroker.controller.quorum.voters.voter_set import VoterNode
    from pybroker.controller.service import Controller
    from pybroker.metadata.image import AccessControlEntry, DelegationToken
    from pybroker.metadata.in_sync import InSyncChange
    from pybroker.security.acl_filter import Filter

_CHANGE_WEIGHT = 20
"""Weight of the change of one resource's configurations, all of which are validated again."""

_ENTRIES_OF_A_CHANGE = 100
"""This many access control entries to compare with a filter weigh as much as one change."""


class LocalChannel:
    """A `ControllerChannel` to this node's own controller, for clients and brokers. Used from one event loop.

    Every coroutine raises `NotControllerError` while that controller does not lead.
    """

    def __init__(self, controller: Controller, is_removed: Callable[[int], bool] = lambda _: False) -> None:
        """`is_removed` returns whether a broker's connection has ended; another process may then register its id."""
        self._controller = controller
        self._is_removed = is_removed
        self.former_isr = FormerIsr(lambda: controller.is_leader)
        """Tracks replicas that left an ISR, so that a broker that reports a loss does not become leader."""
        controller.on_leadership(lambda _: self.former_isr.forget())

    @property
    def leader_id(self) -> int:
        """Node id of the quorum's leader as far as this node knows it, -1 for none."""
        return self._controller.leader_id

    def quorum_state(self) -> QuorumState:
        """Return the state of the quorum; raises `NotControllerError` when this node does not lead it."""
        return self._controller.quorum_state()

    async def create_topics(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> list[CreatedTopic]:
        """Create topics; each succeeds or fails by itself. Results are in the order of `topics`."""
        created: list[CreatedTopic] = []
        whole = whole_creation(topics, self._controller.settings.num_partitions)
        for part in parts(topics, _partitions_of_new):
            event = CreateTopics(
                topics=part,
                topic_ids=[_fresh_id() for _ in part],
                seed=int.from_bytes(os.urandom(4)),
                whole=whole,
                validate_only=validate_only,
            )
            created += await self._controller.submit(event)
        return created

    async def create_partitions(
        self, topics: Sequence[MorePartitions], *, validate_only: bool = False
    ) -> list[EnlargedTopic]:
        """Add partitions to topics; each succeeds or fails by itself. Results are in the order of `topics`."""
        enlarged: list[EnlargedTopic] = []
        whole = whole_enlargement(topics, self._controller.image)
        for part in parts(topics, lambda topic: max(topic.count, 1)):
            event = CreatePartitions(part, int.from_bytes(os.urandom(4)), whole, validate_only)
            enlarged += await self._controller.submit(event)
        return enlarged

    async def delete_topics(self, topics: Sequence[str | bytes]) -> list[DeletedTopic]:
        """Delete topics by name or 16-byte id. Results are in the order of `topics`."""
        deleted: list[DeletedTopic] = []
        whole = whole_deletion(topics)
        for part in parts(topics, lambda _: 1):
            deleted += await self._controller.submit(DeleteTopics(part, whole))
        return deleted

    async def elect_leaders(
        self, election_type: ElectionType, partitions: Sequence[tuple[str, Sequence[int]]] | None
    ) -> list[ElectedTopic] | Result:
        """Elect leaders of partitions, None for all. Each succeeds or fails by itself, unless the request is denied."""
        return cast(
            "list[ElectedTopic] | Result", await self._controller.submit(ElectLeaders(election_type, partitions))
        )

    async def alter_reassignments(
        self, topics: Sequence[ReassignableTopic], *, allow_replication_factor_change: bool = True
    ) -> list[ReassignedTopic]:
        """Reassign partitions, or cancel it; each succeeds or fails by itself. Results are in the order of `topics`."""
        pieces = [
            (number, msgspec.structs.replace(topic, partitions=part))
            for number, topic in enumerate(topics)
            for part in parts(topic.partitions, lambda _: 1)
        ]
        reassigned: list[list[ReassignedPartition]] = [[] for _ in topics]
        for some in parts(pieces, lambda piece: len(piece[1].partitions)):
            event = AlterReassignments([piece for _, piece in some], allow_replication_factor_change)
            for (number, _), result in zip(some, await self._controller.submit(event), strict=True):
                reassigned[number] += result.partitions
        return [ReassignedTopic(topic.name, done) for topic, done in zip(topics, reassigned, strict=True)]

    async def list_reassignments(self, partitions: Sequence[tuple[str, Sequence[int]]] | None) -> list[OngoingTopic]:
        """Return the ongoing reassignments of these partitions by topic, None for all partitions."""
        return cast("list[OngoingTopic]", await self._controller.submit(ListReassignments(partitions)))

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
        """Register a broker; `fenced=False` is for the broker inside this process, which sends no heartbeats."""
        event = RegisterBroker(
            broker_id=broker_id,
            incarnation_id=incarnation_id,
            listeners=listeners,
            security_protocols=security_protocols,
            epoch=self._controller.next_offset,
            rack=rack,
            log_dirs=log_dirs,
            features=features or {},
            fenced=fenced,
            previous_broker_epoch=previous_broker_epoch,
            session_is_alive=self._controller.has_timer(session_key(broker_id)) and not self._is_removed(broker_id),
        )
        return cast("RegisteredBroker", await self._controller.submit(event))

    async def heartbeat(
        self,
        broker_id: int,
        broker_epoch: int,
        *,
        want_fence: bool = False,
        want_shut_down: bool = False,
        metadata_offset: int | None = None,
    ) -> HeartbeatResult:
        """Process a heartbeat. A broker that does not request fencing is unfenced.

        `metadata_offset` is the offset up to which a broker in another process has published metadata. This broker is
        unfenced once it has published its own registration.
        """
        image = self._controller.image
        broker = image.cluster.brokers.get(broker_id)
        if broker is not None and broker.epoch == broker_epoch and not broker.fenced:
            self.former_isr.leader_is_alive(broker_id, image)
        event = Heartbeat(broker_id, broker_epoch, want_fence, want_shut_down, metadata_offset)
        return cast("HeartbeatResult", await self._controller.submit(event))

    async def fail_log_directories(self, broker_id: int, broker_epoch: int, directories: Sequence[bytes]) -> Result:
        """Process the failure of a broker's log directories: partitions there get another leader, or none."""
        return cast("Result", await self._controller.submit(LogDirectoriesFailed(broker_id, broker_epoch, directories)))

    async def assign_replicas(
        self, broker_id: int, broker_epoch: int, directories: Mapping[tuple[bytes, int], bytes]
    ) -> Result:
        """Record the log directories of a broker's replicas, by topic id and partition."""
        result = Result()
        for part in parts(list(directories.items())):
            event = AssignReplicas(broker_id, broker_epoch, dict(part), self.former_isr.of(key for key, _ in part))
            result = await self._controller.submit(event)
            if result.error_code:
                break
        return result

    async def alter_partitions(
        self, broker_id: int, broker_epoch: int, changes: Sequence[InSyncChange]
    ) -> list[InSyncResult]:
        """Change the ISR of partitions that a broker leads. Results are in the order of `changes`."""
        results: list[InSyncResult] = []
        for part in parts(changes):
            reply = await self._controller.submit(AlterPartitions(broker_id, broker_epoch, part))
            if isinstance(reply, Result):
                code = reply.error_code
                results += [InSyncResult(change.topic_id, change.partition, code) for change in part]
            else:
                self.former_isr.leader_is_alive(broker_id, self._controller.image)
                results += reply
        return results

    async def register_controller(
        self,
        controller_id: int,
        *,
        incarnation_id: bytes,
        listeners: Mapping[str, tuple[str, int]],
        security_protocols: Mapping[str, int],
        features: Mapping[str, tuple[int, int]],
    ) -> Result:
        """Register a controller."""
        event = RegisterController(controller_id, incarnation_id, listeners, security_protocols, features)
        return cast("Result", await self._controller.submit(event))

    async def alter_scram_users(
        self, deletions: Sequence[ScramDeletion], upsertions: Sequence[ScramUpsertion]
    ) -> list[AlteredUser]:
        """Change credentials of users; each succeeds or fails by itself."""
        times = Counter([*(one.name for one in deletions), *(one.name for one in upsertions)])
        # First all users that are named twice, which are rejected; then the others in parts, as key derivation is slow.
        twice = AlterScramUsers(
            [one for one in deletions if times[one.name] > 1], [one for one in upsertions if times[one.name] > 1]
        )
        altered: list[AlteredUser] = list(await self._controller.submit(twice))
        for removed in parts([one for one in deletions if times[one.name] == 1]):
            altered += await self._controller.submit(AlterScramUsers(removed, ()))
        for added in parts([one for one in upsertions if times[one.name] == 1]):
            altered += await self._controller.submit(AlterScramUsers((), added))
        return altered

    async def create_token(
        self, owner: str, requester: str, renewers: Sequence[str], max_lifetime_ms: int, wall_ms: int
    ) -> DelegationToken | Result:
        """Create a delegation token, or return the error; `wall_ms` is the time of day, ms since 1970."""
        token_id = base64.urlsafe_b64encode(_fresh_id()).decode().rstrip("=")  # as Kafka writes its ids
        event = CreateToken(token_id, owner, requester, tuple(renewers), max_lifetime_ms, wall_ms)
        return cast("DelegationToken | Result", await self._controller.submit(event))

    async def renew_token(self, token_id: str, principal: str, period_ms: int, wall_ms: int) -> TokenEnd:
        """Renew a delegation token on behalf of `principal`."""
        event = RenewToken(token_id, principal, period_ms, wall_ms)
        return cast("TokenEnd", await self._controller.submit(event))

    async def expire_token(self, token_id: str, principal: str, period_ms: int, wall_ms: int) -> TokenEnd:
        """Expire a delegation token on behalf of `principal`."""
        event = ExpireToken(token_id, principal, period_ms, wall_ms)
        return cast("TokenEnd", await self._controller.submit(event))

    async def unregister_broker(self, broker_id: int) -> Result:
        """Unregister a broker."""
        return cast("Result", await self._controller.submit(UnregisterBroker(broker_id)))

    async def add_voter(self, voter: VoterNode, timeout_ms: int, *, waits: bool = True) -> Result:
        """Add a voter once it has caught up with the metadata log; with `waits`, return once this is committed."""
        return await self._controller.voters.add(voter, timeout_ms, waits=waits)

    async def remove_voter(self, node_id: int, directory_id: bytes) -> Result:
        """Remove a voter."""
        return await self._controller.voters.remove(node_id, directory_id)

    async def allocate_producer_ids(self, broker_id: int, broker_epoch: int) -> range:
        """Allocate a block of 1000 producer ids for a broker; raises `StaleBrokerEpochError`."""
        reply = await self._controller.submit(AllocateProducerIds(broker_id, broker_epoch))
        if isinstance(reply, range):
            return reply
        result = cast("Result", reply)
        if result.error_code is ErrorCode.STALE_BROKER_EPOCH:
            raise StaleBrokerEpochError(result.error_message)
        raise ControllerError(result.error_message)

    async def alter_configs(
        self, changes: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> list[ConfigResult]:
        """Set and delete configurations of topics, brokers and groups; each resource succeeds or fails by itself."""
        results: list[ConfigResult] = []
        for part in parts(changes, lambda _: _CHANGE_WEIGHT):
            results += await self._controller.submit(AlterConfigs(part, validate_only))
        return results

    async def alter_client_quotas(
        self, alterations: Sequence[QuotaAlteration], *, validate_only: bool = False
    ) -> list[AlteredQuotas]:
        """Change quotas of users, clients and addresses; each entity succeeds or fails by itself, and is named once."""
        distinct = one_of_each(alterations)
        unresolved = await unresolved_hosts(name for one in distinct for kind, name in one.entity if kind == IP)
        altered: list[AlteredQuotas] = []
        for part in parts(distinct, lambda one: len(one.ops)):
            altered += await self._controller.submit(AlterClientQuotas(part, unresolved, validate_only))
        return altered

    async def create_acls(self, entries: Sequence[AccessControlEntry]) -> list[Result]:
        """Create access control entries; each succeeds or fails by itself. Results are in the order of `entries`."""
        results: list[Result] = []
        for part in parts(entries, lambda _: 1):
            results += await self._controller.submit(CreateAcls(part, [_fresh_id() for _ in part]))
        return results

    async def delete_acls(self, filters: Sequence[Filter]) -> list[DeletedAcls]:
        """Delete the access control entries that filters match. Results are in the order of `filters`."""
        # Each filter is compared with every entry.
        weight = 1 + len(self._controller.image.acls.by_id) // _ENTRIES_OF_A_CHANGE
        results: list[DeletedAcls] = []
        removed: dict[AccessControlEntry, None] = {}
        for part in parts(filters, lambda _: weight):
            results += await self._controller.submit(DeleteAcls(part, tuple(removed)))
            for one in results[-len(part) :]:
                removed.update(dict.fromkeys(one.entries))
        return results

    async def update_features(self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False) -> Result:
        """Finalize feature levels, all or none."""
        controller = self._controller
        event = UpdateFeatures(updates, controller.node_id, validate_only, int(controller.is_dynamic))
        if event.raises_kraft_version:
            # The kraft.version is no record of the machine and is set first; if either is rejected, nothing changes.
            refused = cast("Result", await controller.submit(msgspec.structs.replace(event, validate_only=True)))
            if not refused.error_code:
                refused = await controller.voters.upgrade(validate_only=validate_only)
            if refused.error_code:
                return refused
        return cast("Result", await controller.submit(event))


def _partitions_of_new(topic: NewTopic) -> int:
    return len(topic.assignments) or topic.num_partitions


def _fresh_id() -> bytes:
    """Return a random topic id whose base64 form does not begin with a dash: Kafka's tools reject such ids."""
    while True:
        topic_id = bytearray(os.urandom(16))
        topic_id[6] = topic_id[6] & 0x0F | 0x40
        topic_id[8] = topic_id[8] & 0x3F | 0x80
        if topic_id[0] >> 2 != _DASH:
            return bytes(topic_id)


_DASH = 62
"""The value of "-" in the URL-safe base64 alphabet of ids."""
