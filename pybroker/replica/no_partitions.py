"""What stands in for a broker's partitions where there are none: at the listeners of controllers.

Owns nothing. A request that a broker has forwarded changes the metadata here, and partitions elsewhere: the broker that
forwarded it waits for its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pybroker.config.topic import TopicConfig


class NoPartitions:
    """Looks as `PartitionPublisher` does to a handler; nothing is ever to be opened."""

    async def published(self, offset: int) -> None:
        """Return at once: no partition follows the metadata here."""

    def failure_of(self, topic: str, first: int = 0) -> str | None:
        """Return None: nothing is opened that could fail."""

    def settings_of(self, topic: str) -> TopicConfig | None:
        """Return None: no topic is served here."""
