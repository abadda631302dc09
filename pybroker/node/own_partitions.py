"""Access of the transaction coordinator to partitions that its own broker leads, without requests or tasks.

Owns the lookup of open partitions by name. Must not know the states of transactions.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from pybroker.coordinator.group.offsets_topic import OFFSETS_TOPIC
from pybroker.machine.parts import MANY
from pybroker.net.native import confirm_transaction
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pybroker.coordinator.runtime.markers import EndedTransaction, Markers
    from pybroker.coordinator.transaction.events import AddPartitions
    from pybroker.coordinator.transaction.own_partitions import EndedHere
    from pybroker.storage.native import Partition


class BrokersPartitions:
    """An `OwnPartitions` over the open partitions of a broker."""

    def __init__(
        self, find: Callable[[str, int], Partition | None], markers: Markers, now_ms: Callable[[], int]
    ) -> None:
        """`now_ms` returns the time of day in milliseconds."""
        self._find = find
        self._markers = markers
        self._now_ms = now_ms

    def takes(self, topic: str) -> bool:
        """Return whether markers of the topic are appended here.

        The group coordinator appends those of `__consumer_offsets`.
        """
        return topic != OFFSETS_TOPIC

    def write(self, ended: Sequence[EndedHere], then: Callable[[list[int]], None]) -> None:
        """Append markers (see `OwnPartitions.write`)."""
        find = self._find
        found: list[EndedTransaction] = []
        missing: list[int] = []
        for one in ended:
            for topic, index in one.partitions:
                partition = find(topic, index)
                if partition is None:
                    missing.append(len(found) + len(missing))
                else:
                    found.append((partition, *one[1:]))
        if not missing:
            self._markers.begin(found, then)
            return

        def complete(codes: list[int]) -> None:
            for position in missing:
                codes.insert(position, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            then(codes)

        self._markers.begin(found, complete)

    def confirm(self, added: AddPartitions, coordinator_epoch: int) -> None:
        """Record that partitions are part of an open transaction (see `OwnPartitions.confirm`).

        At most `MANY` are recorded, to keep the event loop responsive. The leaders verify the others with the
        coordinator.
        """
        some = islice(added.partitions, MANY)
        found = [partition for one in some if (partition := self._find(*one)) is not None]
        if found:
            confirm_transaction(found, added.transactional_id, *added.identity, coordinator_epoch, self._now_ms())
