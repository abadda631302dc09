"""Replicas whose logs are missing records after a start, and which other replicas may have.

Owns the choice and the line that names them. Must not know what the controller does about them (docs/adr/0104).
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
"""So many partitions are named in the line."""


def find_missing_records(partitions: Iterable[Partition], image: MetadataImage) -> list[tuple[bytes, int]]:
    """Return, by topic id and index, the open partitions that are missing records and have other replicas; log them."""
    topics = image.topics.by_id
    missing = [one for one in partitions if one.is_missing_records and one.topic_id in topics]
    replicated = [one for one in missing if len(topics[one.topic_id].partitions[one.index].replicas) > 1]
    if replicated:
        names = ", ".join(f"{one.topic}-{one.index}" for one in replicated[:_MOST_NAMES])
        more = ", ..." if len(replicated) > _MOST_NAMES else ""
        log.warning(
            "%d replicas are missing records (%s%s): another in-sync replica leads, if there is one, and these "
            "replicas fetch the records from it",
            len(replicated),
            names,
            more,
        )
    return [(one.topic_id, one.index) for one in replicated]
