"""Replaces a broker's partitions on the listeners of controllers, where there are none.

Owns nothing. A request that a broker has forwarded changes the metadata here, and partitions on brokers: the broker
that forwarded it waits for its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pybroker.config.topic import TopicConfig


class NoPartitions:
    """Has the interface of `PartitionPublisher` for handlers; no partition is ever opened."""

    async def published(self, offset: int) -> None:
        """Return at once: no partition follows the metadata on this node."""

    def failure_of(self, topic: str, first: int = 0) -> str | None:
        """Return None: no partition is opened here that could fail."""

    def settings_of(self, topic: str) -> TopicConfig | None:
        """Return None: this node serves no topic."""
