"""What the cluster machine is asked, and what it answers.

Owns the shapes alone. Where a choice is random the event carries the dice: fresh ids and a seed.
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


class _Answer(msgspec.Struct, frozen=True):
    """What has an `error_message`, which fits in a string of the protocol whatever it quotes."""

    def __post_init__(self) -> None:
        """Cut a message that is too long."""
        words: str | None = self.error_message  # type: ignore[attr-defined]
        if words is not None and len(words) > LONGEST_MESSAGE:
            msgspec.structs.force_setattr(self, "error_message", words[:LONGEST_MESSAGE])


class Result(_Answer, frozen=True):
    """Success, or why not."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class WholeRequest(msgspec.Struct, frozen=True):
    """What a request asks for, all its events together (`whole_requests`)."""

    times: Mapping[str | bytes, int]
    """How often each topic is named, by name or by id as the request has it."""
    partitions: int
    """How many partitions are to be made."""


class CreateTopics(msgspec.Struct, frozen=True):
    """Create topics; each succeeds or fails by itself. Answered by a `CreatedTopic` for each, in order."""

    topics: Sequence[NewTopic]
    topic_ids: Sequence[bytes]
    """A fresh id for each topic."""
    seed: int
    """Where placement begins."""
    whole: WholeRequest
    validate_only: bool = False


class CreatedTopic(_Answer, frozen=True):
    """What became of one topic of a `CreateTopics`."""

    name: str
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    topic_id: bytes = ZERO_UUID
    num_partitions: int = -1
    replication_factor: int = -1


class CreatePartitions(msgspec.Struct, frozen=True):
    """Give topics more partitions; each succeeds or fails by itself. Answered by an `EnlargedTopic` for each."""

    topics: Sequence[MorePartitions]
    seed: int
    """Where placement begins."""
    whole: WholeRequest
    validate_only: bool = False


class EnlargedTopic(_Answer, frozen=True):
    """What became of one topic of a `CreatePartitions`."""

    name: str
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class DeleteTopics(msgspec.Struct, frozen=True):
    """Delete topics, named by name or by id. Answered by a `DeletedTopic` for each, in order."""

    topics: Sequence[str | bytes]
    whole: WholeRequest


class DeletedTopic(_Answer, frozen=True):
    """What became of one topic of a `DeleteTopics`; name and id as far as they are known."""

    name: str | None
    topic_id: bytes
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class ElectionType(IntEnum):
    """Which leader is wanted, numbered as ElectLeaders does."""

    PREFERRED = 0
    """The first replica, while it is in sync (KIP-460)."""
    UNCLEAN = 1
    """Anybody, also out of sync, where nobody leads."""


class ElectLeaders(msgspec.Struct, frozen=True):
    """Elect leaders, each partition by itself. Answered by an `ElectedTopic` for each topic, or one `Result`."""

    election_type: ElectionType
    partitions: Sequence[tuple[str, Sequence[int]]] | None
    """Partitions by topic; None is every partition, and the reply leaves out those that need no election."""


class ElectedPartition(_Answer, frozen=True):
    """What became of one partition of an `ElectLeaders`."""

    partition: int
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class ElectedTopic(msgspec.Struct, frozen=True):
    """What became of the partitions of one topic of an `ElectLeaders`."""

    name: str
    partitions: Sequence[ElectedPartition]


class AlterReassignments(msgspec.Struct, frozen=True):
    """Give partitions other replicas, or cancel it, each by itself. Answered by a `ReassignedTopic` for each topic."""

    topics: Sequence[ReassignableTopic]
    allow_replication_factor_change: bool = True


class ReassignedPartition(_Answer, frozen=True):
    """What became of one partition of an `AlterReassignments`."""

    partition: int
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class ReassignedTopic(msgspec.Struct, frozen=True):
    """What became of the partitions of one topic of an `AlterReassignments`."""

    name: str
    partitions: Sequence[ReassignedPartition]


class ListReassignments(msgspec.Struct, frozen=True):
    """List what is being reassigned. Answered by an `OngoingTopic` for each topic with such partitions."""

    partitions: Sequence[tuple[str, Sequence[int]]] | None
    """Partitions by topic, of which those that are not there are passed over; None is every partition."""


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

    Answered by an `InSyncResult` for each, in order, or by one `Result`.
    """

    broker_id: int
    broker_epoch: int
    changes: Sequence[InSyncChange]


class RegisterBroker(msgspec.Struct, frozen=True):
    """Register a broker's new incarnation (KIP-631). Answered by a `RegisteredBroker`."""

    broker_id: int
    incarnation_id: bytes
    listeners: Mapping[str, tuple[str, int]]
    security_protocols: Mapping[str, int]
    epoch: int
    """A number greater than any that was given before: the next offset of the log."""
    rack: str | None = None
    log_dirs: tuple[bytes, ...] = ()
    features: Mapping[str, tuple[int, int]] = {}
    fenced: bool = True
    """A broker inside the controller's own process registers unfenced: it is alive when it asks."""
    session_is_alive: bool = False
    """Whether the session of an earlier incarnation is still alive."""
    previous_broker_epoch: int = -1
    """The epoch that it had when it stopped cleanly, so that it has lost nothing (KIP-966); -1 where it did not."""


class RegisteredBroker(_Answer, frozen=True):
    """The epoch that the broker has from now on, or why it was refused."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    broker_epoch: int = -1


class RegisterController(msgspec.Struct, frozen=True):
    """Register a controller's new incarnation (KIP-919). Answered by a `Result`."""

    controller_id: int
    incarnation_id: bytes
    listeners: Mapping[str, tuple[str, int]]
    security_protocols: Mapping[str, int]
    features: Mapping[str, tuple[int, int]]


class UnregisterBroker(msgspec.Struct, frozen=True):
    """Forget a broker. Answered by a `Result`."""

    broker_id: int


class Heartbeat(msgspec.Struct, frozen=True):
    """A broker is alive (KIP-631). Answered by a `HeartbeatResult`."""

    broker_id: int
    broker_epoch: int
    want_fence: bool = False
    want_shut_down: bool = False
    metadata_offset: int | None = None
    """Up to where the broker has put metadata in force; None for a broker in this process, whose image is ours."""


class HeartbeatResult(_Answer, frozen=True):
    """What the broker is to know about itself."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    is_fenced: bool = True
    should_shut_down: bool = False
    is_caught_up: bool = False
    """Whether it has put its own registration in force."""


class LogDirectoriesFailed(msgspec.Struct, frozen=True):
    """A broker has lost log directories: a heartbeat reports them as offline (KIP-858). Answered by a `Result`."""

    broker_id: int
    broker_epoch: int
    directories: Sequence[bytes]


class AssignReplicas(msgspec.Struct, frozen=True):
    """A broker reports where it has put replicas (AssignReplicasToDirs of KIP-858). Answered by a `Result`."""

    broker_id: int
    broker_epoch: int
    directories: Mapping[tuple[bytes, int], bytes]
    """Id of the log directory by topic id and partition."""
    former_isr: Mapping[tuple[bytes, int], tuple[int, ...]] = {}
    """By topic id and partition, the replicas that left the ISR since the leader was last known to be alive."""


class SessionExpired(msgspec.Struct, frozen=True):
    """No heartbeat of a broker came within the session timeout. Answered by None."""

    broker_id: int
    broker_epoch: int
    due_ms: int | None = None
    """When the session ended; None where the broker's death was noticed otherwise."""


class BalanceLeaders(msgspec.Struct, frozen=True):
    """It is time to check for partitions whose leader is not their preferred replica. Answered by None."""

    brokers: frozenset[int] = frozenset()
    """Partitions that a check has found and that are not done; none begins a check."""


class ElectUncleanly(msgspec.Struct, frozen=True):
    """It is time to check for leaderless partitions whose topics allow unclean elections. Answered by None."""


class WriteNoOp(msgspec.Struct, frozen=True):
    """It is time to write a record that says nothing (KIP-835). Answered by None."""


class ConfigChange(msgspec.Struct, frozen=True):
    """Changes of one resource's configurations (KIP-339); a name is in one of the mappings only."""

    resource: ConfigResource
    changes: Mapping[str, str | None]
    """The new value by name; None deletes."""
    appended: Mapping[str, str] = {}
    """Items, with commas, that a list is to have."""
    subtracted: Mapping[str, str] = {}
    """Items, with commas, that a list is to have no longer."""
    replaces: bool = False
    """Whether every configuration that is not named is deleted, as the old AlterConfigs does."""


class AlterConfigs(msgspec.Struct, frozen=True):
    """Change configurations; each resource succeeds or fails by itself. Answered by a `ConfigResult` for each."""

    changes: Sequence[ConfigChange]
    validate_only: bool = False


class ConfigResult(_Answer, frozen=True):
    """What became of one resource of an `AlterConfigs`."""

    resource: ConfigResource
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class AllocateProducerIds(msgspec.Struct, frozen=True):
    """Give a broker a block of producer ids (KIP-730). Answered by a `range`, or a `Result` that refuses."""

    broker_id: int
    broker_epoch: int


class UpgradeType(IntEnum):
    """How far a feature's level may go, numbered as UpdateFeatures does."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(msgspec.Struct, frozen=True):
    """A feature's new level; 0 removes the feature."""

    name: str
    level: int
    upgrade_type: int = UpgradeType.UPGRADE
    """An `UpgradeType`, or a number that is none."""


class UpdateFeatures(msgspec.Struct, frozen=True):
    """Finalize feature levels (KIP-584), all or none. Answered by a `Result`."""

    updates: Sequence[FeatureUpdate]
    controller_id: int
    """Who decides, for the words of a refusal."""
    validate_only: bool = False
    kraft_version: int = 0
    """The level of kraft.version, which is in control records: the machine checks an update of it and writes none."""

    @property
    def raises_kraft_version(self) -> bool:
        """Whether the log is to name the voters from now on."""
        levels = [update.level for update in self.updates if update.name == KRAFT_VERSION]
        return bool(levels) and levels[-1] > self.kraft_version


class ScramDeletion(msgspec.Struct, frozen=True):
    """A user's credential to remove."""

    name: str
    mechanism: int
    """Kafka's number of it, or a number that is none."""


class ScramUpsertion(msgspec.Struct, frozen=True):
    """A user's credential to add or replace."""

    name: str
    mechanism: int
    """Kafka's number of it, or a number that is none."""
    iterations: int
    salt: bytes
    salted_password: bytes

    def __repr__(self) -> str:
        return f"ScramUpsertion({self.name!r}, {self.mechanism}, [hidden])"


class AlterScramUsers(msgspec.Struct, frozen=True):
    """Change credentials of users (KIP-554). Answered by an `AlteredUser` for each user, in the order of their names'
    first mention.
    """

    deletions: Sequence[ScramDeletion]
    upsertions: Sequence[ScramUpsertion]


class AlteredUser(_Answer, frozen=True):
    """What became of one user of an `AlterScramUsers`."""

    name: str
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
