"""Requested elections: more than one batch takes are refused as a whole. `cluster_elections.txt` has the rest."""

from __future__ import annotations

import pytest

from pybroker.controller.cluster.events import ElectedPartition, ElectedTopic, ElectionType, ElectLeaders, Result
from pybroker.controller.cluster.requested_elections import elect_leaders
from pybroker.metadata.image import (
    NO_LEADER,
    BrokerRegistration,
    ClusterImage,
    MetadataImage,
    PartitionImage,
    TopicImage,
    TopicsImage,
)
from pybroker.protocol.errors import ErrorCode
from tests.support.controllers import CLUSTER

LIMIT = 10_000


def image_of(partitions: int) -> MetadataImage:
    """Broker 2 can lead every partition, and does not."""
    broker = BrokerRegistration(
        id=2, incarnation_id=b"x" * 16, epoch=1, listeners={}, security_protocols={}, fenced=False
    )
    lost = PartitionImage(leader=NO_LEADER, leader_epoch=0, partition_epoch=0, replicas=(1, 2), isr=(1,))
    topic = TopicImage(name="t", topic_id=b"t" * 16, partitions=dict.fromkeys(range(partitions), lost))
    topics = TopicsImage(by_name={"t": topic}, by_id={topic.topic_id: topic})
    return MetadataImage(cluster=ClusterImage(brokers={2: broker}), topics=topics)


@pytest.mark.parametrize("requested", [None, [("t", range(LIMIT + 1))]])
def test_more_elections_than_one_batch_takes_are_refused(requested: list[tuple[str, range]] | None) -> None:
    outcome = elect_leaders(image_of(LIMIT + 1), ElectLeaders(ElectionType.UNCLEAN, requested), CLUSTER)
    assert outcome.records == ()
    assert outcome.reply == Result(ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")


def test_as_many_as_one_batch_takes_are_held() -> None:
    outcome = elect_leaders(image_of(LIMIT), ElectLeaders(ElectionType.UNCLEAN, None), CLUSTER)
    assert len(outcome.records) == LIMIT
    assert outcome.reply == [ElectedTopic("t", [ElectedPartition(index) for index in range(LIMIT)])]


def test_elections_that_change_nothing_are_not_counted() -> None:
    outcome = elect_leaders(image_of(LIMIT + 1), ElectLeaders(ElectionType.PREFERRED, None), CLUSTER)
    assert outcome.records == ()
    [topic] = outcome.reply if isinstance(outcome.reply, list) else []
    assert {one.error_code for one in topic.partitions} == {ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE}
