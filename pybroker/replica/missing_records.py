"""Replicas whose logs lack records after a start, if other replicas may have these records.

Owns the choice and the log message. Must not know how the controller handles them (docs/adr/0104).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pybroker.metadata.image import MetadataImage
    from pybroker.storage.native import Partition

log = logging.getLogger("pybroker.replica")

_MOST_NAMES = 20
"""Maximum number of partitions that the message names."""


def find_missing_records(partitions: Iterable[Partition], image: MetadataImage) -> list[tuple[bytes, int]]:
    """Return, by topic id and index, the open partitions that lack records and have other replicas; log them."""
    topics = image.topics.by_id
    missing = [one for one in partitions if one.is_missing_records and one.topic_id in topics]
    replicated = [one for one in missing if len(topics[one.topic_id].partitions[one.index].replicas) > 1]
    if replicated:
        names = ", ".join(f"{one.topic}-{one.index}" for one in replicated[:_MOST_NAMES])
        more = ", ..." if len(replicated) > _MOST_NAMES else ""
        log.warning(
            "%d replicas are missing records (%s%s). Another in-sync replica leads if possible, and these "
            "replicas fetch the records from it",
            len(replicated),
            names,
            more,
        )
    return [(one.topic_id, one.index) for one in replicated]
