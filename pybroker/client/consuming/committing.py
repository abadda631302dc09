"""A consumer's calls that commit offsets and fetch committed offsets, for `AsyncConsumer`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from pybroker.client.administration.groups import OffsetAndMetadata, Offsets
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.consuming.commits import Callback, Commits
from pybroker.client.consuming.subscription_state import SubscriptionState
from pybroker.client.drivers.driver import Identity
from pybroker.client.settings import ConsumerSettings
from pybroker.client.transaction.consumed import Consumed, consumed_by


class Committing(ABC):
    """The calls of an `AsyncConsumer` about its group's offsets."""

    settings: ConsumerSettings
    _commits: Commits
    _state: SubscriptionState

    @abstractmethod
    def membership(self) -> Identity:
        """Return the identity with which offsets are committed."""

    @abstractmethod
    def _begin(self) -> None:
        """Have the event loop watch the fetcher. Raises ClosedError."""

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None) -> None:
        """Commit these offsets, or the positions of all partitions, and wait for the response.

        Raises CommitFailedError when this member may not commit (any more), BrokerError, UnreachableError.
        """
        self._begin()
        await self._commits.commit(self._offsets(offsets), self.settings.default_api_timeout_ms / 1000)

    def commit_later(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        callback: Callback | None = None,
    ) -> None:
        """Commit without waiting. A later `poll` or `close` calls the callback with the offsets and the error."""
        self._begin()
        self._commits.commit_later(self._offsets(offsets), callback)

    def consumed(self) -> Consumed:
        """Return positions and group metadata for `send_offsets_to_transaction`. Raises SettingError."""
        return consumed_by(self.settings, self._state.positions(), self.membership())

    def _offsets(self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None) -> Offsets:
        if offsets is None:
            return self._state.positions()
        return {p: OffsetAndMetadata(o) if isinstance(o, int) else o for p, o in offsets.items()}

    async def committed(self, *partitions: TopicPartition) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's committed offsets of these partitions, None where there is none."""
        self._begin()
        offsets = await self._commits.stable(partitions)
        return {partition: offsets.get(partition) for partition in partitions}
