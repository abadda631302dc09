"""A consumer's queries of topics and offsets, for `AsyncConsumer`. They change neither assignment nor positions."""

from __future__ import annotations

from collections.abc import Mapping

from pybroker.client.administration.async_admin import AsyncAdmin
from pybroker.client.administration.topics import EARLIEST, LATEST, ListedOffset, TopicDescription, TopicPartition
from pybroker.client.settings import ConsumerSettings


class OffsetQueries:
    """The calls of an `AsyncConsumer` that list offsets and describe topics."""

    settings: ConsumerSettings
    _admin: AsyncAdmin

    async def offsets_for_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, ListedOffset | None]:
        """Return the first record at or after a time (ms) of each partition; None where there is none."""
        found = await self._admin.list_offsets(times, read_committed=self._reads_committed())
        return {partition: listed if listed.offset >= 0 else None for partition, listed in found.items()}

    async def beginning_offsets(self, *partitions: TopicPartition) -> dict[TopicPartition, int]:
        """Return the first offset of each partition."""
        found = await self._admin.list_offsets(dict.fromkeys(partitions, EARLIEST))
        return {partition: listed.offset for partition, listed in found.items()}

    async def end_offsets(self, *partitions: TopicPartition) -> dict[TopicPartition, int]:
        """Return the offset after the last record that this consumer may read, of each partition."""
        found = await self._admin.list_offsets(
            dict.fromkeys(partitions, LATEST), read_committed=self._reads_committed()
        )
        return {partition: listed.offset for partition, listed in found.items()}

    async def partitions_for(self, topic: str) -> TopicDescription:
        """Return the partitions of a topic. Raises BrokerError."""
        return (await self._admin.describe_topics([topic]))[0]

    def _reads_committed(self) -> bool:
        return self.settings.isolation_level == "read_committed"
