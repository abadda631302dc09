"""The states of a partition, as Kafka's controller has named them since it had state machines.

Owns the table, and which state an image shows: descriptions print it, and tests hold the decisions of the controller
against it. No state is kept, as the image says it all. A deletion is one record, within which a partition that has a
leader loses it.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from pybroker.machine.transitions import Transitions
from pybroker.metadata.image import NO_LEADER

if TYPE_CHECKING:
    from pybroker.metadata.image import PartitionImage


class PartitionState(Enum):
    """A partition, seen from the controller."""

    NON_EXISTENT = "NonExistentPartition"
    """Never made, or made and deleted."""
    NEW = "NewPartition"
    """It has replicas, and never had a leader."""
    ONLINE = "OnlinePartition"
    """It has a leader."""
    OFFLINE = "OfflinePartition"
    """It had one."""


class PartitionTrigger(Enum):
    """What happens to a partition."""

    CREATED = "created"
    ELECTED = "elected"
    LOST_ITS_LEADER = "lost_its_leader"
    DELETED = "deleted"


_S, _T = PartitionState, PartitionTrigger

TRANSITIONS = {
    (_S.NON_EXISTENT, _T.CREATED): _S.NEW,
    (_S.NEW, _T.ELECTED): _S.ONLINE,
    (_S.ONLINE, _T.ELECTED): _S.ONLINE,
    (_S.OFFLINE, _T.ELECTED): _S.ONLINE,
    (_S.NEW, _T.LOST_ITS_LEADER): _S.OFFLINE,
    (_S.ONLINE, _T.LOST_ITS_LEADER): _S.OFFLINE,
    (_S.OFFLINE, _T.LOST_ITS_LEADER): _S.OFFLINE,
    (_S.OFFLINE, _T.DELETED): _S.NON_EXISTENT,
}

PARTITION_STATES = Transitions("partition", _S.NON_EXISTENT, TRANSITIONS)


def partition_state(partition: PartitionImage | None) -> PartitionState:
    """Return the state that an image shows; None is a partition that it lacks."""
    if partition is None:
        return PartitionState.NON_EXISTENT
    if partition.leader != NO_LEADER:
        return PartitionState.ONLINE
    return PartitionState.OFFLINE if partition.leader_epoch > 0 else PartitionState.NEW
