"""Failed brokers in Metadata responses: suspected before they are fenced, and still listed for a while after.

Owns how long a response waits for an election, and how long a fenced broker is still listed. Must not fence a broker:
`pybroker.controller.failure_detector` does. `docs/rooms/failure-detection.md` explains both.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pybroker.metadata.delta import MetadataDelta
    from pybroker.metadata.image import BrokerRegistration, MetadataImage

SUSPECTED_S = 0.5
"""Maximum time that a broker is suspected, in seconds: elections of a controller and of leaders take less."""
NAMED_MS = 2_000
"""Time that a fenced broker is still listed.

librdkafka checks its partitions each second, so two of its checks see the failed broker and the new leaders.
"""


class FailedBrokers:
    """The suspected brokers, and the fenced brokers that are still listed.

    A metadata publisher. Used from one event loop.
    """

    def __init__(
        self,
        image: Callable[[], MetadataImage],
        steady_ms: Callable[[], int],
        poll: Callable[[], None] = lambda: None,
    ) -> None:
        """Create a record in which no broker has failed.

        Args:
            image: returns the newest published image.
            steady_ms: a clock in milliseconds that never goes back.
            poll: calls `suspect` for brokers whose connection was closed, before the event loop reports it. Otherwise a
                Metadata request caused by the failure could be served first.
        """
        self._image = image
        self._steady_ms = steady_ms
        self._poll = poll
        # Broker epochs of the suspected brokers. Invariant: none of them is fenced in the newest image.
        self._suspects: dict[int, int] = {}
        self._changed: asyncio.Future[None] | None = None
        self._brokers: Mapping[int, BrokerRegistration] = {}
        # Broker epoch, and the time until which the broker is still listed.
        self._named_until_ms: dict[int, tuple[int, int]] = {}

    def has_suspects(self) -> bool:
        """Return whether any broker is suspected. Costs a system call for each voter."""
        self._poll()
        return bool(self._suspects)

    def are_suspected(self, brokers: Iterable[int]) -> bool:
        """Return whether one of these brokers is suspected."""
        return any(broker in self._suspects for broker in brokers)

    def suspect(self, broker_id: int) -> None:
        """Suspect a broker whose connection was closed, for `SUSPECTED_S` seconds."""
        broker = self._image().cluster.brokers.get(broker_id)
        if broker is None or broker.fenced or self._suspects.get(broker_id) == broker.epoch:
            return
        self._suspects[broker_id] = broker.epoch
        asyncio.get_running_loop().call_later(SUSPECTED_S, self._forget, broker_id, broker.epoch)

    def reached(self, broker_id: int) -> None:
        """End the suspicion of a broker, as a connection to it is open."""
        if self._suspects.pop(broker_id, None) is not None:
            self._wake()

    async def changed(self) -> None:
        """Wait until a suspicion ends, or the metadata changes; returns at once if no broker is suspected."""
        if self._suspects:
            if self._changed is None:
                self._changed = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._changed)

    def publish(self, _delta: MetadataDelta, image: MetadataImage, /) -> None:
        """End the suspicion of brokers that were fenced or registered again.

        Newly fenced ones stay listed for `NAMED_MS`.
        """
        if image.cluster.brokers is not self._brokers:
            before, self._brokers = self._brokers, image.cluster.brokers
            self._name_fenced(before)
            for broker_id, epoch in list(self._suspects.items()):
                broker = self._brokers.get(broker_id)
                if broker is None or broker.fenced or broker.epoch != epoch:
                    del self._suspects[broker_id]
        self._wake()

    def is_named(self, broker: BrokerRegistration) -> bool:
        """Return whether Metadata still lists a fenced broker."""
        epoch, until_ms = self._named_until_ms.get(broker.id, (-1, 0))
        return epoch == broker.epoch and self._steady_ms() < until_ms

    def _name_fenced(self, before: Mapping[int, BrokerRegistration]) -> None:
        now_ms = self._steady_ms()
        self._named_until_ms = {id_: entry for id_, entry in self._named_until_ms.items() if now_ms < entry[1]}
        for broker in self._brokers.values():
            was = before.get(broker.id)
            is_fenced_now = was is not None and broker.fenced and not was.fenced and was.epoch == broker.epoch
            if is_fenced_now and not broker.in_controlled_shutdown:
                self._named_until_ms[broker.id] = broker.epoch, now_ms + NAMED_MS

    def _forget(self, broker_id: int, epoch: int) -> None:
        if self._suspects.get(broker_id) == epoch:
            del self._suspects[broker_id]
            self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, None
        if changed is not None:
            changed.set_result(None)
