"""Totals of a request that is split into several events.

The totals are: how often the request names each topic, and the number of partitions to create. They are computed once
for a request and passed to the controller's state machine with each event. It may reject an event because of them.
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
    """Return how often a request for new topics names each topic, and the number of their partitions.

    `num_partitions` replaces a count of -1.
    """
    wanted = (
        len(topic.assignments) or (num_partitions if topic.num_partitions == -1 else max(topic.num_partitions, 0))
        for topic in topics
    )
    return WholeRequest(Counter(topic.name for topic in topics), sum(wanted))


def whole_enlargement(topics: Sequence[MorePartitions], image: MetadataImage) -> WholeRequest:
    """Return how often a request to add partitions names each topic, and the number of added partitions."""
    known = image.topics.by_name
    more = (max(topic.count - len(known[topic.name].partitions), 0) for topic in topics if topic.name in known)
    return WholeRequest(Counter(topic.name for topic in topics), sum(more))


def whole_deletion(topics: Sequence[str | bytes]) -> WholeRequest:
    """Return how often a request to delete topics names each topic, by name or by id. No partitions are created."""
    return WholeRequest(Counter(topics), 0)
