"""Brokers that were fenced a moment ago, and are still named to clients.

Owns for how long. Must not say that they lead anything: the metadata has moved their partitions. Apache Kafka names a
dead broker until its session ends, seconds later, and clients count on learning of the new leaders first: librdkafka,
since 2.10, forgets a broker at once that an answer does not name, and what it had there waits for its next look at its
partitions, a second later (ADR 0094).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pybroker.metadata.delta import MetadataDelta
    from pybroker.metadata.image import BrokerRegistration, MetadataImage

NAMED_MS = 2_000
"""Two of librdkafka's looks at its partitions, of which there is one each second."""


class RecentDeaths:
    """A publisher of the metadata image."""

    def __init__(self, steady_ms: Callable[[], int]) -> None:
        """`steady_ms` is a clock that never goes back."""
        self._steady_ms = steady_ms
        self._brokers: Mapping[int, BrokerRegistration] = {}
        # Broker epoch, and when it is named no more.
        self._until_ms: dict[int, tuple[int, int]] = {}

    def publish(self, _delta: MetadataDelta, image: MetadataImage, /) -> None:
        """Take note of who was fenced without having asked to leave."""
        before, self._brokers = self._brokers, image.cluster.brokers
        if before is self._brokers:
            return
        now = self._steady_ms()
        self._until_ms = {number: kept for number, kept in self._until_ms.items() if now < kept[1]}
        for broker in self._brokers.values():
            was = before.get(broker.id)
            is_fenced = was is not None and broker.fenced and not was.fenced and was.epoch == broker.epoch
            if is_fenced and not broker.in_controlled_shutdown:
                self._until_ms[broker.id] = broker.epoch, now + NAMED_MS

    def names(self, broker: BrokerRegistration) -> bool:
        """Return whether a fenced broker is named still."""
        epoch, until_ms = self._until_ms.get(broker.id, (-1, 0))
        return epoch == broker.epoch and self._steady_ms() < until_ms
