"""Requested reassignments: more changes than one batch takes are refused, each by itself.

`cluster_reassignments.txt` has the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from pybroker.controller.cluster.events import (
    AlterReassignments,
    ListReassignments,
    ReassignableTopic,
    ReassignedPartition,
    ReassignedTopic,
)
from pybroker.controller.cluster.requested_reassignments import alter_reassignments, list_reassignments
from pybroker.machine.machine import Outcome
from pybroker.metadata.image import (
    BrokerRegistration,
    ClusterImage,
    MetadataImage,
    PartitionImage,
    TopicImage,
    TopicsImage,
)
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.alter_partition_reassignments import ReassignablePartition
from pybroker.protocol.schema import Message
from tests.support.controllers import CLUSTER

LIMIT = 10_000


def image_of(partitions: int, *, adding: tuple[int, ...] = ()) -> MetadataImage:
    """Brokers 1 and 2, of which 1 leads every partition."""
    brokers = {
        broker: BrokerRegistration(
            id=broker, incarnation_id=b"x" * 16, epoch=1, listeners={}, security_protocols={}, fenced=False
        )
        for broker in (1, 2)
    }
    partition = PartitionImage(
        leader=1, leader_epoch=0, partition_epoch=0, replicas=(1, *adding), isr=(1,), adding_replicas=adding
    )
    topic = TopicImage(name="t", topic_id=b"t" * 16, partitions=dict.fromkeys(range(partitions), partition))
    topics = TopicsImage(by_name={"t": topic}, by_id={topic.topic_id: topic})
    return MetadataImage(cluster=ClusterImage(brokers=brokers), topics=topics)


def reassign(partitions: range, replicas: list[int]) -> AlterReassignments:
    requested = [ReassignablePartition(partition_index=index, replicas=replicas) for index in partitions]
    return AlterReassignments([ReassignableTopic(name="t", partitions=requested)])


def responded_partitions(outcome: Outcome[Message, list[ReassignedTopic]]) -> Sequence[ReassignedPartition]:
    assert isinstance(outcome.reply, list)
    (topic,) = outcome.reply
    assert topic.name == "t"
    return topic.partitions


def test_changes_beyond_what_one_batch_takes_are_refused() -> None:
    outcome = alter_reassignments(image_of(LIMIT + 2), reassign(range(LIMIT + 2), [1, 2]), CLUSTER)
    assert len(outcome.records) == LIMIT
    partitions = responded_partitions(outcome)
    assert Counter(one.error_code for one in partitions) == {ErrorCode.NONE: LIMIT, ErrorCode.POLICY_VIOLATION: 2}
    refused = partitions[-1]
    assert refused.error_message == "Unable to perform excessively large batch operation."


def test_what_changes_nothing_is_not_counted() -> None:
    outcome = alter_reassignments(image_of(LIMIT + 1), reassign(range(LIMIT + 1), [1]), CLUSTER)
    assert outcome.records == ()
    assert {one.error_code for one in responded_partitions(outcome)} == {ErrorCode.NONE}


def test_a_listing_changes_nothing_and_names_every_partition_once() -> None:
    outcome = list_reassignments(image_of(3, adding=(2,)), ListReassignments(None))
    assert outcome.records == ()
    assert isinstance(outcome.reply, list)
    (topic,) = outcome.reply
    assert topic.name == "t"
    assert [msgspec.structs.astuple(one) for one in topic.partitions] == [
        (index, (1, 2), (2,), ()) for index in range(3)
    ]
