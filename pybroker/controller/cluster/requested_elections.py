"""Leader elections by request (KIP-460).

Owns the selection of partitions, and the result of each. `elections` computes the leader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.controller.cluster.availability import Rules
from pybroker.controller.cluster.elections import Election
from pybroker.controller.cluster.events import ElectedPartition, ElectedTopic, ElectionType, ElectLeaders, Result
from pybroker.controller.cluster.log_directories import usable_brokers
from pybroker.controller.cluster.partition_changes import build_change
from pybroker.controller.cluster.partitions import MAX_PARTITIONS_PER_REQUEST
from pybroker.machine.machine import Outcome
from pybroker.metadata.image import NO_LEADER
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pybroker.controller.cluster.settings import ClusterSettings
    from pybroker.metadata.image import MetadataImage, PartitionImage, TopicImage
    from pybroker.protocol.messages.records.partition_change import PartitionChangeRecord
    from pybroker.protocol.schema import Message

_ELECTIONS = {ElectionType.PREFERRED: Election.PREFERRED, ElectionType.UNCLEAN: Election.UNCLEAN}
_NOT_ELECTED = {
    ElectionType.PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    ElectionType.UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}


def elect_leaders(
    image: MetadataImage, event: ElectLeaders, settings: ClusterSettings
) -> Outcome[Message, list[ElectedTopic] | Result]:
    """Decide about leaders, each partition by itself; the request is denied if its records exceed one batch."""
    elections = _Elections(image, event.election_type, settings)
    if event.partitions is None:
        held = (elections.hold(topic.name, topic.partitions) for topic in image.topics.by_name.values())
        reply = [_without_needless(topic) for topic in held]
    else:
        reply = [elections.hold(name, indices) for name, indices in event.partitions]
    if len(elections.records) > MAX_PARTITIONS_PER_REQUEST:
        words = "Unable to perform excessively large batch operation."
        return Outcome((), Result(ErrorCode.POLICY_VIOLATION, words))
    return Outcome(tuple(elections.records), reply)


def _without_needless(topic: ElectedTopic) -> ElectedTopic:
    needless = ErrorCode.ELECTION_NOT_NEEDED
    return ElectedTopic(topic.name, [one for one in topic.partitions if one.error_code is not needless])


class _Elections:
    """Elections of one type in one state of the cluster, and the records of their results."""

    def __init__(self, image: MetadataImage, election_type: ElectionType, settings: ClusterSettings) -> None:
        self._image = image
        self._type = election_type
        self._usable = usable_brokers(image)
        self._rules = Rules(image, settings)
        self.records: list[PartitionChangeRecord] = []

    def hold(self, name: str, indices: Iterable[int]) -> ElectedTopic:
        """Elect the leaders of a topic's partitions."""
        topic = self._image.topics.by_name.get(name)
        if topic is None:
            words = f"No such topic as {name}"
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return ElectedTopic(name, [ElectedPartition(index, unknown, words) for index in indices])
        return ElectedTopic(name, [self._elect(topic, index, topic.partitions.get(index)) for index in indices])

    def _elect(self, topic: TopicImage, index: int, partition: PartitionImage | None) -> ElectedPartition:
        if partition is None:
            words = f"No such partition as {topic.name}-{index}"
            return ElectedPartition(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, words)
        if self._has_wanted_leader(partition):
            return ElectedPartition(index, ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.ELECTION_NOT_NEEDED.message)
        record = build_change(
            topic.topic_id,
            index,
            partition,
            partition,
            usable=self._usable,
            rules=self._rules(topic),
            election=_ELECTIONS[self._type],
        )
        if record is None:
            code = _NOT_ELECTED[self._type]
            return ElectedPartition(index, code, code.message)
        self.records.append(record)
        return ElectedPartition(index)

    def _has_wanted_leader(self, partition: PartitionImage) -> bool:
        if self._type is ElectionType.PREFERRED:
            return partition.leader == partition.replicas[0]
        return partition.leader != NO_LEADER
