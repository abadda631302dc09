"""A consumer's seek, pause and resume, for `AsyncConsumer`. Sends no request."""

from __future__ import annotations

from pybroker.client.administration.groups import OffsetAndMetadata
from pybroker.client.administration.topics import EARLIEST, LATEST, TopicPartition
from pybroker.client.consuming.subscription_state import SubscriptionState


class Seeking:
    """The calls of an `AsyncConsumer` that set, pause and resume positions."""

    _state: SubscriptionState

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Set the position of a partition. Raises ClientError for a partition that is not assigned.

        An offset with a leader epoch is validated before anything is read: `poll` may raise LogTruncationError.
        """
        self._state.seek(partition, OffsetAndMetadata(offset) if isinstance(offset, int) else offset)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Seek to the first offset, of all partitions where none is given."""
        for partition in partitions or self._state.all():
            self.seek(partition, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Seek to the end of the log, of all partitions where none is given."""
        for partition in partitions or self._state.all():
            self.seek(partition, LATEST)

    def pause(self, *partitions: TopicPartition) -> None:
        """Return no records of these partitions until `resume`. They stay assigned."""
        for partition in partitions:
            self._state.pause(partition, True)

    def resume(self, *partitions: TopicPartition) -> None:
        """Return records of these partitions again."""
        for partition in partitions:
            self._state.pause(partition, False)

    def paused(self) -> frozenset[TopicPartition]:
        """Return the paused partitions."""
        return self._state.paused()
