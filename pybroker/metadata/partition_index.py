"""Partitions by what somebody has to do about them: by broker, without leader, with another leader than the preferred.

Owns the sets alone; `index_delta` makes them follow a change of partitions. Must not know topics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

PartitionKey = tuple[bytes, int]
"""Topic id and index."""

_NONE: AbstractSet[PartitionKey] = frozenset()


class PartitionIndex(msgspec.Struct, frozen=True):
    """Sets of partitions. None of them is written after it is in an index."""

    by_broker: Mapping[int, AbstractSet[PartitionKey]] = {}
    """Where a broker is in sync, or an eligible leader; no broker has an empty set."""
    leaderless: AbstractSet[PartitionKey] = frozenset()
    displaced: AbstractSet[PartitionKey] = frozenset()
    """Whose leader is another than the first replica, those without leader included."""

    def of_broker(self, broker: int) -> list[PartitionKey]:
        """Return in order where a broker is in sync, or an eligible leader."""
        return sorted(self.by_broker.get(broker, _NONE))


EMPTY_INDEX = PartitionIndex()
