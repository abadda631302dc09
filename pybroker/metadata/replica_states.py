"""The states of a replica, as Kafka's controller has named them since it had state machines.

Owns the table, and which state an image shows: descriptions print it, and tests hold the decisions of the controller
against it. No state is kept, as the image says it all. A deletion is one record, and a broker that was away removes
its logs when it sees that record: the states of a deletion are passed within it.
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
    """A replica, seen from the controller."""

    NON_EXISTENT = "NonExistentReplica"
    NEW = "NewReplica"
    """A reassignment adds it, and it is not in sync yet."""
    ONLINE = "OnlineReplica"
    OFFLINE = "OfflineReplica"
    """Its broker is fenced, or its log directory has failed."""
    DELETION_STARTED = "ReplicaDeletionStarted"
    DELETION_SUCCESSFUL = "ReplicaDeletionSuccessful"
    DELETION_INELIGIBLE = "ReplicaDeletionIneligible"
    """It could not be deleted; it is tried again when its broker is back."""


class ReplicaTrigger(Enum):
    """What happens to a replica."""

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
