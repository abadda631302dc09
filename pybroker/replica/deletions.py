"""Deletions of records that wait until every live replica has deleted them (Kafka's `DelayedDeleteRecords`).

Owns the waiting requests by partition. Must not know requests, nor how a leader deletes: it is called afterwards. The
data plane reports new log start offsets of followers; the metadata contains live brokers and leaders.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pybroker.metadata.image import MetadataImage
    from pybroker.replica.native import DataPlane, Partition, ReplicaDeletedRecords

_LEADER = "leader"
_NO_OFFSET = -1
_SLICE = 200
"""Partitions processed in one iteration of the event loop: a few milliseconds."""

Key = tuple[bytes, int]
"""Topic id and index."""


class Deleted(NamedTuple):
    """The progress of a deletion over all replicas."""

    low_watermark: int
    """The lowest log start offset of the live replicas; -1 with an error."""
    error_code: ErrorCode = ErrorCode.NONE


class _Awaited(msgspec.Struct, frozen=True):
    """A partition whose live replicas shall advance their log start to an offset."""

    partition: Partition
    offset: int
    done: asyncio.Future[Deleted]


class Deletions:
    """Waits until replicas have deleted records. Used from one event loop."""

    def __init__(
        self,
        data_plane: DataPlane,
        *,
        image: Callable[[], MetadataImage],
        find: Callable[[str, int], Partition | None],
        is_lost: Callable[[str, int], bool],
    ) -> None:
        """`image` returns the image published in the data plane, `find` the partition open here, `is_lost` whether
        its directory has failed.
        """
        self._data_plane = data_plane
        self._image = image
        self._find = find
        self._is_lost = is_lost
        # Invariant: the data plane reports the followers' log starts of each of these partitions while it is here.
        self._awaited: dict[Key, dict[asyncio.Future[Deleted], _Awaited]] = {}

    async def replicated(self, deletions: Sequence[tuple[Partition, int]], timeout_s: float) -> list[Deleted]:
        """Return the low watermark of each of these partitions, once all live replicas have reached the offset.

        The leader's own deletion is kept in any case. A partition that takes longer than `timeout_s` gets
        REQUEST_TIMED_OUT, and a partition that this broker does not lead any more gets NOT_LEADER_OR_FOLLOWER.
        """
        before: list[int] = []
        waiting: list[_Awaited] = []
        until = asyncio.get_running_loop().time() + timeout_s
        try:
            for number, (partition, offset) in enumerate(deletions, 1):
                before.append(self._low_watermark(partition))
                waiting.append(self._begin(partition, offset))
                if number % _SLICE == 0:
                    await asyncio.sleep(0)
            pending = [one.done for one in waiting if not one.done.done()]
            if pending:
                await asyncio.wait(pending, timeout=max(until - asyncio.get_running_loop().time(), 0.0))
        finally:
            for one in waiting:
                self._end(one)
        return [
            one.done.result() if one.done.done() else Deleted(low_watermark, ErrorCode.REQUEST_TIMED_OUT)
            for one, low_watermark in zip(waiting, before, strict=True)
        ]

    def deleted(self, event: ReplicaDeletedRecords) -> None:
        """Process a new log start offset of a follower."""
        self._step((event.topic_id, event.index))

    def published(self) -> None:
        """Process a newly published image: brokers may be fenced, and leaders changed."""
        for key in list(self._awaited):
            self._step(key)

    def _begin(self, partition: Partition, offset: int) -> _Awaited:
        one = _Awaited(partition, offset, asyncio.get_running_loop().create_future())
        key = (partition.topic_id, partition.index)
        self._awaited.setdefault(key, {})[one.done] = one
        # Before the check, so that no progress of a follower between the two is missed.
        partition.await_deletion(True)
        self._check(one)
        if not one.done.done():
            # Followers learn this log's start offset from a fetch response.
            partition.wake_followers(self._data_plane)
        return one

    def _end(self, one: _Awaited) -> None:
        key = (one.partition.topic_id, one.partition.index)
        awaited = self._awaited.get(key, {})
        if awaited.pop(one.done, None) is not None and not awaited:
            del self._awaited[key]
            one.partition.await_deletion(False)

    def _step(self, key: Key) -> None:
        for one in self._awaited.get(key, {}).values():
            if not one.done.done():
                self._check(one)

    def _check(self, one: _Awaited) -> None:
        topic, index = one.partition.topic, one.partition.index
        if self._is_lost(topic, index):
            one.done.set_result(Deleted(_NO_OFFSET, ErrorCode.KAFKA_STORAGE_ERROR))
        elif self._find(topic, index) is not one.partition:
            one.done.set_result(Deleted(_NO_OFFSET, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        elif one.partition.role != _LEADER:
            one.done.set_result(Deleted(_NO_OFFSET, ErrorCode.NOT_LEADER_OR_FOLLOWER))
        else:
            low_watermark = self._low_watermark(one.partition)
            if low_watermark >= one.offset:
                one.done.set_result(Deleted(low_watermark))

    def _low_watermark(self, partition: Partition) -> int:
        brokers = self._image().cluster.brokers.values()
        return partition.low_watermark([broker.id for broker in brokers if not broker.fenced])
