"""Which brokers an active controller knows to be alive.

Owns that definition alone: a broker is unfenced, it has sent this controller a heartbeat, and its connection has not
ended. A controller that was just elected knows of none. Must not know what follows from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.metadata.image import MetadataImage


class Contacts:
    """The brokers that have sent a heartbeat to a controller since it became active.

    Heartbeats are noted when they arrive, before the machine handles them. So an event that is submitted later knows of
    them, and of an earlier one the machine has the outcome when it handles the heartbeat.
    """

    def __init__(self) -> None:
        self._brokers: set[int] = set()
        self.since = -1
        """Offset of the metadata log at which the controller became active, -1 before it first did."""

    def begin(self, since: int) -> None:
        """Forget all brokers: the controller has become active."""
        self.since = since
        self._brokers.clear()

    def note(self, broker_id: int) -> bool:
        """Note a heartbeat, and return whether it is the first one of this broker."""
        is_first = broker_id not in self._brokers
        self._brokers.add(broker_id)
        return is_first

    def alive(self, image: MetadataImage, is_gone: Callable[[int], bool]) -> frozenset[int]:
        """Return the brokers that are alive; `is_gone` returns whether a broker's connection has ended."""
        brokers = image.cluster.brokers
        return frozenset(
            one for one in self._brokers if one in brokers and not brokers[one].fenced and not is_gone(one)
        )
