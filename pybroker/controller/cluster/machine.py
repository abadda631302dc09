"""ClusterMachine: every decision about the cluster's metadata.

Owns the state that decisions read, and the dispatch of events to the package's modules. Changes only by records,
through the same delta that every broker applies. Reads no clock, has no random source and does no I/O.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pybroker.controller.cluster import (
    acls,
    brokers,
    client_quotas,
    configs,
    controllers,
    delegation_tokens,
    features,
    in_sync,
    log_directories,
    partitions,
    periodic,
    producer_ids,
    requested_elections,
    requested_reassignments,
    scram_users,
    topics,
)
from pybroker.controller.cluster.acls import CreateAcls, DeleteAcls
from pybroker.controller.cluster.client_quotas import AlterClientQuotas
from pybroker.controller.cluster.delegation_tokens import CreateToken, ExpireToken, RemoveEndedTokens, RenewToken
from pybroker.controller.cluster.events import (
    AllocateProducerIds,
    AlterConfigs,
    AlterPartitions,
    AlterReassignments,
    AlterScramUsers,
    AssignReplicas,
    BalanceLeaders,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    ElectLeaders,
    ElectUncleanly,
    Heartbeat,
    ListReassignments,
    LogDirectoriesFailed,
    RegisterBroker,
    RegisterController,
    SessionExpired,
    UnregisterBroker,
    UpdateFeatures,
    WriteNoOp,
)
from pybroker.metadata.delta import MetadataDelta
from pybroker.metadata.image import EMPTY_IMAGE

if TYPE_CHECKING:
    from pybroker.controller.cluster.settings import ClusterSettings
    from pybroker.machine.machine import Outcome
    from pybroker.metadata.image import MetadataImage
    from pybroker.protocol.schema import Message

Event = (
    AllocateProducerIds
    | AlterClientQuotas
    | AlterConfigs
    | AlterPartitions
    | AlterReassignments
    | AlterScramUsers
    | AssignReplicas
    | BalanceLeaders
    | CreateAcls
    | CreatePartitions
    | CreateToken
    | CreateTopics
    | DeleteAcls
    | DeleteTopics
    | ElectLeaders
    | ElectUncleanly
    | ExpireToken
    | Heartbeat
    | ListReassignments
    | LogDirectoriesFailed
    | RegisterBroker
    | RegisterController
    | RemoveEndedTokens
    | RenewToken
    | SessionExpired
    | UnregisterBroker
    | UpdateFeatures
    | WriteNoOp
)


class ClusterMachine:
    """A `Machine` whose state is a metadata image."""

    def __init__(self, settings: ClusterSettings, image: MetadataImage = EMPTY_IMAGE) -> None:
        self._settings = settings
        self._image = image
        # Invariant: None exactly when `_image` shows every record that was applied.
        self._delta: MetadataDelta | None = None

    @property
    def image(self) -> MetadataImage:
        """The state. Its `offset` and `epoch` stay those of the initial image: the log tracks them."""
        if self._delta is not None:
            self._image = self._delta.build()
            self._delta = None
        return self._image

    def draft(self) -> ClusterMachine:
        """Return a machine with the same state; images are immutable, so nothing is copied."""
        return ClusterMachine(self._settings, self.image)

    def keep(self) -> ClusterMachine:
        """Complete a draft whose records are committed."""
        return self

    def drop(self) -> None:
        """Discard a draft whose records are not committed; its state was never visible."""

    def apply(self, record: Message) -> None:
        """Apply a record to the state; raises `RecordError`."""
        if self._delta is None:
            self._delta = MetadataDelta(self._image)
        self._delta.apply(record)

    def handle(self, event: Event, now: int) -> Outcome[Message, Any]:
        """Decide about an event at `now` in milliseconds; the event's docstring describes the reply."""
        image, settings = self.image, self._settings
        match event:
            case CreateTopics():
                return topics.create_topics(image, event, settings)
            case CreatePartitions():
                return partitions.create_partitions(image, event)
            case DeleteTopics():
                return topics.delete_topics(image, event)
            case ElectLeaders():
                return requested_elections.elect_leaders(image, event, settings)
            case AlterReassignments():
                return requested_reassignments.alter_reassignments(image, event, settings)
            case ListReassignments():
                return requested_reassignments.list_reassignments(image, event)
            case AlterPartitions():
                return in_sync.alter_partitions(image, event, settings)
            case RegisterBroker():
                return brokers.register_broker(image, event, settings, now)
            case Heartbeat():
                return brokers.heartbeat(image, event, settings, now)
            case SessionExpired():
                return brokers.expire_session(image, event, settings, now)
            case LogDirectoriesFailed():
                return log_directories.fail_log_directories(image, event, settings)
            case AssignReplicas():
                return log_directories.assign_replicas(image, event, settings)
            case RegisterController():
                return controllers.register_controller(image, event)
            case UnregisterBroker():
                return brokers.unregister_broker(image, event, settings)
            case AlterConfigs():
                return configs.alter_configs(image, event, settings)
            case BalanceLeaders():
                return periodic.balance_leaders(image, event, settings, now)
            case ElectUncleanly():
                return periodic.elect_uncleanly(image, event, settings, now)
            case WriteNoOp():
                return periodic.write_no_op(settings, now)
            case AllocateProducerIds():
                return producer_ids.allocate_producer_ids(image, event)
            case AlterScramUsers():
                return scram_users.alter_scram_users(image, event)
            case AlterClientQuotas():
                return client_quotas.alter_client_quotas(image, event)
            case CreateAcls():
                return acls.create_acls(image, event)
            case DeleteAcls():
                return acls.delete_acls(image, event)
            case CreateToken():
                return delegation_tokens.create_token(image, event, settings)
            case RenewToken():
                return delegation_tokens.renew_token(image, event, settings)
            case ExpireToken():
                return delegation_tokens.expire_token(image, event)
            case RemoveEndedTokens():
                return delegation_tokens.remove_ended_tokens(image, event, settings, now)
            case UpdateFeatures():
                return features.update_features(image, event, settings)
