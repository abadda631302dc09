"""Brokers whose process seems to have ended, as this node has seen, while the metadata still has them as leaders.

Owns for how long an answer that would name such a leader waits for the election. Must not fence anybody: the
controller does. A client that asks where a partition is now, some milliseconds after its leader died, would be sent to
the dead one, and ask again only after its own backoff, a second later (ADR 0048).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pybroker.metadata.delta import MetadataDelta
    from pybroker.metadata.image import MetadataImage

LONGEST_S = 0.5
"""So long an answer waits at most: elections of a controller and of leaders take less."""


class Suspects:
    """A publisher of the metadata image. Used from one event loop."""

    def __init__(self, image: Callable[[], MetadataImage], poll: Callable[[], None]) -> None:
        """`image` returns the newest published image.

        `poll` calls `note` for brokers whose end the event loop has not seen yet: what waits for the loop
        beside that end must not overtake it.
        """
        self._image = image
        self._poll = poll
        # The epoch of each suspect's registration. Invariant: none of them is fenced in the newest image.
        self._epochs: dict[int, int] = {}
        self._changed: asyncio.Future[None] | None = None

    def are_there(self) -> bool:
        """Return whether anybody is suspected now: nearly never. Costs a system call for each connection."""
        self._poll()
        return bool(self._epochs)

    def note(self, broker_id: int) -> None:
        """Note that a broker has closed its connection; it is suspected for a moment."""
        broker = self._image().cluster.brokers.get(broker_id)
        if broker is None or broker.fenced or self._epochs.get(broker_id) == broker.epoch:
            return
        self._epochs[broker_id] = broker.epoch
        asyncio.get_running_loop().call_later(LONGEST_S, self._forget, broker_id, broker.epoch)

    def acquit(self, broker_id: int) -> None:
        """Suspect a broker no more: it was reached."""
        if self._epochs.pop(broker_id, None) is not None:
            self._wake()

    def publish(self, _delta: MetadataDelta, image: MetadataImage, /) -> None:
        """Suspect nobody any more whom the metadata has fenced, forgotten or registered anew."""
        if not self._epochs:
            return
        for broker_id, epoch in list(self._epochs.items()):
            broker = image.cluster.brokers.get(broker_id)
            if broker is None or broker.fenced or broker.epoch != epoch:
                del self._epochs[broker_id]
        self._wake()

    def among(self, leaders: Iterable[int]) -> bool:
        """Return whether one of these brokers is suspected."""
        return any(leader in self._epochs for leader in leaders)

    async def changed(self) -> None:
        """Wait until somebody is suspected no more, or the metadata has changed."""
        if self._epochs:
            if self._changed is None:
                self._changed = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._changed)

    def _forget(self, broker_id: int, epoch: int) -> None:
        if self._epochs.get(broker_id) == epoch:
            del self._epochs[broker_id]
            self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, None
        if changed is not None:
            changed.set_result(None)
