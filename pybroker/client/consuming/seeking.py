"""Where a consumer's next records come from, for `AsyncConsumer`: seek, pause and resume. Asks no broker."""

from __future__ import annotations

from pybroker.client.administration.groups import OffsetAndMetadata
from pybroker.client.administration.topics import EARLIEST, LATEST, TopicPartition
from pybroker.client.consuming.subscription_state import SubscriptionState


class Seeking:
    """The calls of an `AsyncConsumer` that move and pause positions."""

    _state: SubscriptionState

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Go on at another offset. Raises ClientError for a partition that is not assigned.

        One with a leader epoch is looked up before anything is read: `poll` may raise LogTruncationError.
        """
        self._state.seek(partition, OffsetAndMetadata(offset) if isinstance(offset, int) else offset)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Go on at the first offset, of all partitions where none is named."""
        for partition in partitions or self._state.all():
            self.seek(partition, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Go on after the last record, of all partitions where none is named."""
        for partition in partitions or self._state.all():
            self.seek(partition, LATEST)

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out nothing of these until `resume`; they stay assigned."""
        for partition in partitions:
            self._state.pause(partition, True)

    def resume(self, *partitions: TopicPartition) -> None:
        """Hand these out again."""
        for partition in partitions:
            self._state.pause(partition, False)

    def paused(self) -> frozenset[TopicPartition]:
        """What is paused."""
        return self._state.paused()
