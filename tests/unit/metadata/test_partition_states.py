"""The states of partitions and replicas: the tables, and what an image shows."""

from __future__ import annotations

import pytest

from pybroker.machine.transitions import TransitionError
from pybroker.metadata.image import NO_LEADER, PartitionImage
from pybroker.metadata.partition_states import PARTITION_STATES, PartitionState, PartitionTrigger, partition_state
from pybroker.metadata.replica_states import REPLICA_STATES, ReplicaState, ReplicaTrigger, replica_state


def partition(
    leader: int, epoch: int = 0, *, adding: tuple[int, ...] = (), isr: tuple[int, ...] = (1,)
) -> PartitionImage:
    return PartitionImage(
        leader=leader, leader_epoch=epoch, partition_epoch=epoch, replicas=(1, 2), isr=isr, adding_replicas=adding
    )


def test_every_state_can_be_reached() -> None:
    assert PARTITION_STATES.unreachable() == []
    assert REPLICA_STATES.unreachable() == []


@pytest.mark.parametrize("state", [PartitionState.NON_EXISTENT, PartitionState.NEW, PartitionState.ONLINE])
def test_only_an_offline_partition_is_deleted(state: PartitionState) -> None:
    with pytest.raises(TransitionError):
        PARTITION_STATES.following(state, PartitionTrigger.DELETED)


@pytest.mark.parametrize("state", ReplicaState)
def test_only_an_offline_replica_is_deleted(state: ReplicaState) -> None:
    if state is ReplicaState.OFFLINE:
        assert REPLICA_STATES.following(state, ReplicaTrigger.DELETION_BEGAN) is ReplicaState.DELETION_STARTED
    else:
        with pytest.raises(TransitionError):
            REPLICA_STATES.following(state, ReplicaTrigger.DELETION_BEGAN)


@pytest.mark.parametrize(
    ("shown", "state"),
    [
        (None, PartitionState.NON_EXISTENT),
        (partition(NO_LEADER), PartitionState.NEW),
        (partition(1), PartitionState.ONLINE),
        (partition(NO_LEADER, 3), PartitionState.OFFLINE),
    ],
)
def test_an_image_shows_the_state_of_a_partition(shown: PartitionImage | None, state: PartitionState) -> None:
    assert partition_state(shown) is state


def test_an_image_shows_the_state_of_a_replica() -> None:
    working = {1: (b"d" * 16,)}
    assert replica_state(None, 1, working) is ReplicaState.NON_EXISTENT
    assert replica_state(partition(1), 3, working) is ReplicaState.NON_EXISTENT
    assert replica_state(partition(1), 1, working) is ReplicaState.ONLINE
    assert replica_state(partition(1), 2, working) is ReplicaState.OFFLINE
    working[2] = (b"e" * 16,)
    assert replica_state(partition(1, adding=(2,)), 2, working) is ReplicaState.NEW
    assert replica_state(partition(1, adding=(2,), isr=(1, 2)), 2, working) is ReplicaState.ONLINE
