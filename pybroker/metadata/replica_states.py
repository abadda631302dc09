"""The states of a replica, with the names of Kafka's controller.

Owns the transition table, and the derivation of a state from an image. Descriptions print the states, and tests check
the controller's decisions against the table. No state is stored. A deletion is one record, which passes all states of a
deletion. A broker that was offline deletes its logs when it replays that record.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from pybroker.machine.transitions import Transitions
from pybroker.metadata.replica_directories import offline_replicas

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pybroker.metadata.image import PartitionImage


class ReplicaState(Enum):
    """The state of a replica at the controller."""

    NON_EXISTENT = "NonExistentReplica"
    NEW = "NewReplica"
    """Added by a reassignment, and not in sync yet."""
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"
    """Its broker is fenced, or its log directory has failed."""
    DELETION_STARTED = "ReplicaDeletionStarted"
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"
    """The deletion failed, and is retried when the broker is online again."""


class ReplicaTrigger(Enum):
    """An event of a replica."""

    ASSIGNED = "assigned"
    STARTED = "started"
    STOPPED = "stopped"
    DELETION_BEGAN = "deletion_began"
    DELETED = "deleted"
    DELETION_FAILED = "deletion_failed"
    FORGOTTEN = "forgotten"


_S, _T = ReplicaState, ReplicaTrigger

TRANSITIONS = {
    (_S.NON_EXISTENT, _T.ASSIGNED): _S.NEW,
    (_S.NEW, _T.STARTED): _S.ONLINE,
    (_S.ONLINE, _T.STARTED): _S.ONLINE,
    (_S.OFFLINE, _T.STARTED): _S.ONLINE,
    (_S.DELETION_INELIGIBLE, _T.STARTED): _S.ONLINE,
    (_S.NEW, _T.STOPPED): _S.OFFLINE,
    (_S.ONLINE, _T.STOPPED): _S.OFFLINE,
    (_S.OFFLINE, _T.STOPPED): _S.OFFLINE,
    (_S.DELETION_INELIGIBLE, _T.STOPPED): _S.OFFLINE,
    (_S.OFFLINE, _T.DELETION_BEGAN): _S.DELETION_STARTED,
    (_S.DELETION_STARTED, _T.DELETED): _S.DELETION_SUCCESSFUL,
    (_S.DELETION_STARTED, _T.DELETION_FAILED): _S.DELETION_INELIGIBLE,
    (_S.DELETION_SUCCESSFUL, _T.FORGOTTEN): _S.NON_EXISTENT,
}

REPLICA_STATES = Transitions("replica", _S.NON_EXISTENT, TRANSITIONS)


def replica_state(
    partition: PartitionImage | None, broker: int, working: Mapping[int, Collection[bytes]]
) -> ReplicaState:
    """Return the state of a broker's replica; `working` is what `directories_by_broker` returns."""
    if partition is None or broker not in partition.replicas:
        return ReplicaState.NON_EXISTENT
    if broker in offline_replicas(partition, working):
        return ReplicaState.OFFLINE
    is_new = broker in partition.adding_replicas and broker not in partition.isr
    return ReplicaState.NEW if is_new else ReplicaState.ONLINE
