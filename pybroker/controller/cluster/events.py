"""Events of the cluster machine, and its replies.

Owns only these types. An event carries all random values that its decision needs: new ids and a seed.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import msgspec

from pybroker.metadata.features import KRAFT_VERSION
from pybroker.protocol.errors import LONGEST_MESSAGE, ErrorCode
from pybroker.protocol.messages.alter_partition_reassignments import ReassignableTopic
from pybroker.protocol.messages.create_partitions import CreatePartitionsTopic as MorePartitions
from pybroker.protocol.messages.create_topics import CreatableTopic as NewTopic
from pybroker.protocol.schema import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pybroker.metadata.image import ConfigResource
    from pybroker.metadata.in_sync import InSyncChange

__all__ = [
    "AllocateProducerIds",
    "AlterConfigs",
    "AlterPartitions",
    "AlterReassignments",
    "AlterScramUsers",
    "AlteredUser",
    "AssignReplicas",
    "BalanceLeaders",
    "ConfigChange",
    "ConfigResult",
    "CreatePartitions",
    "CreateTopics",
    "CreatedTopic",
    "DeleteTopics",
    "DeletedTopic",
    "ElectLeaders",
    "ElectUncleanly",
    "ElectedPartition",
    "ElectedTopic",
    "ElectionType",
    "EnlargedTopic",
    "FeatureUpdate",
    "Heartbeat",
    "HeartbeatResult",
    "ListReassignments",
    "LogDirectoriesFailed",
    "MorePartitions",
    "NewTopic",
    "OngoingReassignment",
    "OngoingTopic",
    "ReassignableTopic",
    "ReassignedPartition",
    "ReassignedTopic",
    "RegisterBroker",
    "RegisterController",
    "RegisteredBroker",
    "Result",
    "ScramDeletion",
    "ScramUpsertion",
    "SessionExpired",
    "UnregisterBroker",
    "UpdateFeatures",
    "UpgradeType",
    "WholeRequest",
    "WriteNoOp",
]


class _Result(msgspec.Struct, frozen=True):
    """Base of replies with an `error_message`, which is cut to the maximum length of a string in the protocol."""

    def __post_init__(self) -> None:
        """Truncate a message that is too long."""
        words: str | None = self.error_message  # type: ignore[attr-defined]
        if words is not None and len(words) > LONGEST_MESSAGE:
            msgspec.structs.force_setattr(self, "error_message", words[:LONGEST_MESSAGE])


class Result(_Result, frozen=True):
    """Success, or an error."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class WholeRequest(msgspec.Struct, frozen=True):
    """Totals of a request over all its events (`whole_requests`)."""

    times: Mapping[str | bytes, int]
    """How often the request names each topic, by name or by id."""
    partitions: int
    """Number of partitions to create."""


class CreateTopics(msgspec.Struct, frozen=True):
    """Create topics; each succeeds or fails by itself. The reply is a `CreatedTopic` for each, in order."""

    topics: Sequence[NewTopic]
    topic_ids: Sequence[bytes]
    """A new id for each topic."""
    seed: int
    """Seed of the placement."""
    whole: WholeRequest
    validate_only: bool = False


class CreatedTopic(_Result, frozen=True):
    """The result of one topic of a `CreateTopics`."""

    name: str
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    topic_id: bytes = ZERO_UUID
    num_partitions: int = -1
    replication_factor: int = -1


class CreatePartitions(msgspec.Struct, frozen=True):
    """Add partitions to topics; each succeeds or fails by itself. The reply is an `EnlargedTopic` for each."""

    topics: Sequence[MorePartitions]
    seed: int
    """Seed of the placement."""
    whole: WholeRequest
    validate_only: bool = False


class EnlargedTopic(_Result, frozen=True):
    """The result of one topic of a `CreatePartitions`."""

    name: str
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class DeleteTopics(msgspec.Struct, frozen=True):
    """Delete topics, by name or by id. The reply is a `DeletedTopic` for each, in order."""

    topics: Sequence[str | bytes]
    whole: WholeRequest


class DeletedTopic(_Result, frozen=True):
    """The result of one topic of a `DeleteTopics`, with name and id if they are known."""

    name: str | None
    topic_id: bytes
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class ElectionType(IntEnum):
    """The type of an election, numbered as in ElectLeaders."""

    PREFERRED = 0
    """Elect the first replica, if it is in sync (KIP-460)."""
    UNCLEAN = 1
    """Elect any replica, also out of sync, if there is no leader."""


class ElectLeaders(msgspec.Struct, frozen=True):
    """Elect leaders, each partition by itself. The reply is an `ElectedTopic` for each topic, or one `Result`."""

    election_type: ElectionType
    partitions: Sequence[tuple[str, Sequence[int]]] | None
    """Partitions by topic; None is every partition, and the reply omits those that need no election."""


class ElectedPartition(_Result, frozen=True):
    """The result of one partition of an `ElectLeaders`."""

    partition: int
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class ElectedTopic(msgspec.Struct, frozen=True):
    """The results of the partitions of one topic of an `ElectLeaders`."""

    name: str
    partitions: Sequence[ElectedPartition]


class AlterReassignments(msgspec.Struct, frozen=True):
    """Reassign partitions, or cancel it, each by itself. The reply is a `ReassignedTopic` for each topic."""

    topics: Sequence[ReassignableTopic]
    allow_replication_factor_change: bool = True


class ReassignedPartition(_Result, frozen=True):
    """The result of one partition of an `AlterReassignments`."""

    partition: int
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class ReassignedTopic(msgspec.Struct, frozen=True):
    """The results of the partitions of one topic of an `AlterReassignments`."""

    name: str
    partitions: Sequence[ReassignedPartition]


class ListReassignments(msgspec.Struct, frozen=True):
    """List ongoing reassignments. The reply is an `OngoingTopic` for each topic with such partitions."""

    partitions: Sequence[tuple[str, Sequence[int]]] | None
    """Partitions by topic, of which unknown ones are skipped; None is every partition."""


class OngoingReassignment(msgspec.Struct, frozen=True):
    """A partition that is being reassigned."""

    partition: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class OngoingTopic(msgspec.Struct, frozen=True):
    """A topic's partitions that are being reassigned."""

    name: str
    partitions: Sequence[OngoingReassignment]


class AlterPartitions(msgspec.Struct, frozen=True):
    """Change the in-sync replicas of partitions that a broker leads, each by itself (KIP-497).

    The reply is an `InSyncResult` for each, in order, or one `Result`.
    """

    broker_id: int
    broker_epoch: int
    changes: Sequence[InSyncChange]


class RegisterBroker(msgspec.Struct, frozen=True):
    """Register a broker's new incarnation (KIP-631). The reply is a `RegisteredBroker`."""

    broker_id: int
    incarnation_id: bytes
    listeners: Mapping[str, tuple[str, int]]
    security_protocols: Mapping[str, int]
    epoch: int
    """A number greater than all earlier broker epochs: the next offset of the log."""
    rack: str | None = None
    log_dirs: tuple[bytes, ...] = ()
    features: Mapping[str, tuple[int, int]] = {}
    fenced: bool = True
    """A broker inside the controller's own process registers unfenced: it is alive when it registers."""
    session_is_alive: bool = False
    """Whether the session of an earlier incarnation is still alive."""
    previous_broker_epoch: int = -1
    """The broker epoch at its clean stop, after which its logs are complete (KIP-966); -1 after an unclean stop."""


class RegisteredBroker(_Result, frozen=True):
    """The new broker epoch, or the error of the registration."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    broker_epoch: int = -1


class RegisterController(msgspec.Struct, frozen=True):
    """Register a controller's new incarnation (KIP-919). The reply is a `Result`."""

    controller_id: int
    incarnation_id: bytes
    listeners: Mapping[str, tuple[str, int]]
    security_protocols: Mapping[str, int]
    features: Mapping[str, tuple[int, int]]


class UnregisterBroker(msgspec.Struct, frozen=True):
    """Unregister a broker. The reply is a `Result`."""

    broker_id: int


class Heartbeat(msgspec.Struct, frozen=True):
    """A broker is alive (KIP-631). The reply is a `HeartbeatResult`."""

    broker_id: int
    broker_epoch: int
    want_fence: bool = False
    want_shut_down: bool = False
    metadata_offset: int | None = None
    """Offset of the metadata that the broker has published; None for a broker in this process: it shares the image."""


class HeartbeatResult(_Result, frozen=True):
    """The controller's state of the broker."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    is_fenced: bool = True
    should_shut_down: bool = False
    is_caught_up: bool = False
    """Whether the broker has published its own registration."""


class LogDirectoriesFailed(msgspec.Struct, frozen=True):
    """A broker has lost log directories: a heartbeat reports them as offline (KIP-858). The reply is a `Result`."""

    broker_id: int
    broker_epoch: int
    directories: Sequence[bytes]


class AssignReplicas(msgspec.Struct, frozen=True):
    """A broker reports the directories of replicas (AssignReplicasToDirs of KIP-858). The reply is a `Result`."""

    broker_id: int
    broker_epoch: int
    directories: Mapping[tuple[bytes, int], bytes]
    """Id of the log directory by topic id and partition."""
    former_isr: Mapping[tuple[bytes, int], tuple[int, ...]] = {}
    """By topic id and partition, the replicas that left the ISR since the leader was last known to be alive."""


class SessionExpired(msgspec.Struct, frozen=True):
    """A broker sent no heartbeat within the session timeout. The reply is None."""

    broker_id: int
    broker_epoch: int
    due_ms: int | None = None
    """When the session expired; None if the broker's failure was detected otherwise."""


class BalanceLeaders(msgspec.Struct, frozen=True):
    """It is time to check for partitions whose leader is not their preferred replica. The reply is None."""

    brokers: frozenset[int] = frozenset()
    """Brokers that a check has found and whose partitions remain; empty for a new check."""


class ElectUncleanly(msgspec.Struct, frozen=True):
    """It is time to check for leaderless partitions whose topics allow unclean elections. The reply is None."""


class WriteNoOp(msgspec.Struct, frozen=True):
    """It is time to write a NoOpRecord (KIP-835). The reply is None."""


class ConfigChange(msgspec.Struct, frozen=True):
    """Changes of one resource's configurations (KIP-339); each key is in only one of the mappings."""

    resource: ConfigResource
    changes: Mapping[str, str | None]
    """The new value by key; None deletes the key."""
    appended: Mapping[str, str] = {}
    """Items to append to a list, separated by commas."""
    subtracted: Mapping[str, str] = {}
    """Items to remove from a list, separated by commas."""
    replaces: bool = False
    """Whether all other configurations are deleted, as the old AlterConfigs does."""


class AlterConfigs(msgspec.Struct, frozen=True):
    """Change configurations; each resource succeeds or fails by itself. The reply is a `ConfigResult` for each."""

    changes: Sequence[ConfigChange]
    validate_only: bool = False


class ConfigResult(_Result, frozen=True):
    """The result of one resource of an `AlterConfigs`."""

    resource: ConfigResource
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class AllocateProducerIds(msgspec.Struct, frozen=True):
    """Allocate a block of producer ids for a broker (KIP-730). The reply is a `range`, or a `Result` with an error."""

    broker_id: int
    broker_epoch: int


class UpgradeType(IntEnum):
    """The allowed changes of a feature's level, numbered as in UpdateFeatures."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(msgspec.Struct, frozen=True):
    """A feature's new level; 0 removes the feature."""

    name: str
    level: int
    upgrade_type: int = UpgradeType.UPGRADE
    """An `UpgradeType`, or an invalid number."""


class UpdateFeatures(msgspec.Struct, frozen=True):
    """Finalize feature levels (KIP-584), all or none. The reply is a `Result`."""

    updates: Sequence[FeatureUpdate]
    controller_id: int
    """Node id of the deciding controller, for error messages."""
    validate_only: bool = False
    kraft_version: int = 0
    """The level of kraft.version, which is in control records: the machine validates its update and writes none."""

    @property
    def raises_kraft_version(self) -> bool:
        """Whether the update raises kraft.version, so that the log will contain the voter set."""
        levels = [update.level for update in self.updates if update.name == KRAFT_VERSION]
        return bool(levels) and levels[-1] > self.kraft_version


class ScramDeletion(msgspec.Struct, frozen=True):
    """A user's credential to delete."""

    name: str
    mechanism: int
    """Kafka's number of the mechanism, or an invalid number."""


class ScramUpsertion(msgspec.Struct, frozen=True):
    """A user's credential to add or replace."""

    name: str
    mechanism: int
    """Kafka's number of the mechanism, or an invalid number."""
    iterations: int
    salt: bytes
    salted_password: bytes

    def __repr__(self) -> str:
        return f"ScramUpsertion({self.name!r}, {self.mechanism}, [hidden])"


class AlterScramUsers(msgspec.Struct, frozen=True):
    """Change credentials of users (KIP-554). The reply is an `AlteredUser` for each user, in the order in which the
    names are first mentioned.
    """

    deletions: Sequence[ScramDeletion]
    upsertions: Sequence[ScramUpsertion]


class AlteredUser(_Result, frozen=True):
    """The result of one user of an `AlterScramUsers`."""

    name: str
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
