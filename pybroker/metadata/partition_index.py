"""An index of partitions: by broker, without leader, and without their preferred leader.

Owns the sets only; `index_delta` updates them after changes of partitions. Must not know topics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

PartitionKey = tuple[bytes, int]
"""Topic id and partition index."""

_NONE: AbstractSet[PartitionKey] = frozenset()


class PartitionIndex(msgspec.Struct, frozen=True):
    """Sets of partitions. A set is not modified once it is in an index."""

    by_broker: Mapping[int, AbstractSet[PartitionKey]] = {}
    """The partitions whose ISR or ELR includes a broker. No set is empty."""
    leaderless: AbstractSet[PartitionKey] = frozenset()
    displaced: AbstractSet[PartitionKey] = frozenset()
    """Partitions whose leader is not the first replica, including those without leader."""

    def of_broker(self, broker: int) -> list[PartitionKey]:
        """Return the sorted partitions whose ISR or ELR includes the broker."""
        return sorted(self.by_broker.get(broker, _NONE))


EMPTY_INDEX = PartitionIndex()
