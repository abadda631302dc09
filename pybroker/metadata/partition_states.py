"""The states of a partition, with the names of Kafka's controller.

Owns the transition table, and the derivation of a state from an image. Descriptions print the states, and tests check
the controller's decisions against the table. No state is stored. A deletion is one record, which also ends the
partition's leadership.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from pybroker.machine.transitions import Transitions
from pybroker.metadata.image import NO_LEADER

if TYPE_CHECKING:
    from pybroker.metadata.image import PartitionImage


class PartitionState(Enum):
    """The state of a partition at the controller."""

    NON_EXISTENT = "NonExistentPartition"
    """Never created, or deleted."""
    NEW = "NewPartition"
    """Has replicas, but never had a leader."""
    ONLINE = "OnlinePartition"
    """Has a leader."""
    OFFLINE = "OfflinePartition"
    """Lost its leader."""


class PartitionTrigger(Enum):
    """An event of a partition."""

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
    """Return the state of a partition in an image; None is a partition that is not in the image."""
    if partition is None:
        return PartitionState.NON_EXISTENT
    if partition.leader != NO_LEADER:
        return PartitionState.ONLINE
    return PartitionState.OFFLINE if partition.leader_epoch > 0 else PartitionState.NEW
