from __future__ import annotations

import pytest

from pybroker.metadata.image import NO_LEADER, PartitionImage, TopicImage
from pybroker.replica.roles import Follower, Leader, Role, plan_role, plan_roles


@pytest.mark.parametrize(
    ("leader", "replicas", "isr", "role"),
    [
        (1, (1,), (1,), Leader(epoch=7, in_sync_replicas=1)),
        (1, (2, 1, 3), (1, 3), Leader(epoch=7, in_sync_replicas=2)),
        (2, (2, 1, 3), (2, 1), Follower(leader=2, epoch=7)),
        (NO_LEADER, (2, 1), (2,), Follower(leader=NO_LEADER, epoch=7)),
        (2, (2, 3), (2, 3), None),
        (NO_LEADER, (2,), (2,), None),
    ],
)
def test_a_replica_leads_follows_or_is_not_here(
    leader: int, replicas: tuple[int, ...], isr: tuple[int, ...], role: Role | None
) -> None:
    assert plan_role(PartitionImage(leader, 7, 0, replicas, isr), node_id=1) == role


def test_a_topics_roles_are_those_of_the_replicas_that_are_here() -> None:
    partitions = {
        0: PartitionImage(1, 3, 0, (1, 2), (1, 2)),
        1: PartitionImage(2, 4, 0, (2, 3), (2, 3)),
        2: PartitionImage(2, 5, 0, (2, 1), (2,)),
    }
    topic = TopicImage("t", b"t" * 16, partitions)
    assert plan_roles(topic, 1) == {0: Leader(3, 2), 2: Follower(2, 5)}
    assert plan_roles(topic, 4) == {}
