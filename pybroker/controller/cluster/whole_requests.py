"""What a request asks for as a whole, where its events are parts of it.

Arithmetic on requests: how often each topic is named, and how many partitions are to be made. It is done once for a
request and handed to the machine with each of its events, which refuses by it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pybroker.controller.cluster.events import WholeRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pybroker.controller.cluster.events import MorePartitions, NewTopic
    from pybroker.metadata.image import MetadataImage


def whole_creation(topics: Sequence[NewTopic], num_partitions: int) -> WholeRequest:
    """Sum up a request for new topics; `num_partitions` is what a topic gets that asks for -1."""
    wanted = (
        len(topic.assignments) or (num_partitions if topic.num_partitions == -1 else max(topic.num_partitions, 0))
        for topic in topics
    )
    return WholeRequest(Counter(topic.name for topic in topics), sum(wanted))


def whole_enlargement(topics: Sequence[MorePartitions], image: MetadataImage) -> WholeRequest:
    """Sum up a request for more partitions of topics that are there."""
    known = image.topics.by_name
    more = (max(topic.count - len(known[topic.name].partitions), 0) for topic in topics if topic.name in known)
    return WholeRequest(Counter(topic.name for topic in topics), sum(more))


def whole_deletion(topics: Sequence[str | bytes]) -> WholeRequest:
    """Sum up a request to delete topics, by name or by id."""
    return WholeRequest(Counter(topics), 0)
