"""ISR changes that a leader requests from the controller: adds replicas that caught up, removes lagging replicas.

Owns the requested change of each partition, and that one request at a time is in flight. Must not know the connection
to the controller. A response changes nothing here: the new ISR arrives with a metadata image. The data plane counts a
replica that caught up from its own report on, until a newer partition epoch or `stop_joining`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import msgspec

from pybroker.metadata.in_sync import NO_BROKER_EPOCH, InSyncChange
from pybroker.protocol.errors import ErrorCode
from pybroker.replica.native import lagging_replicas, stop_joining
from pybroker.replica.roles import may_be_in_sync, plan_eligible

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from pybroker.metadata.image import ClusterImage, MetadataImage, PartitionImage
    from pybroker.metadata.in_sync import InSyncResult
    from pybroker.replica.native import DataPlane, Partition, ReplicaCaughtUp

log = logging.getLogger("pybroker.replica")

_AGAIN_S = 0.05
"""Backoff after a request that no controller responded to."""

_NOT_LET_IN = frozenset({ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED})
_AWAITS_METADATA = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)
"""Errors after which a newer image shows the state of the partition (Kafka's `Partition.handleAlterPartitionError`)."""

_RECOVERED = 0

Key = tuple[bytes, int]
"""Topic id and index."""


class _Joining(msgspec.Struct, frozen=True):
    """A replica that has caught up."""

    broker_epoch: int
    """`NO_BROKER_EPOCH` if it is unknown."""
    partition_epoch: int
    """At a newer epoch the high watermark stops waiting for the replica: it may lack records committed since."""


class _WantedChange(msgspec.Struct, frozen=True):
    """The requested change of a partition, by its leader at a leader epoch."""

    leader_epoch: int
    joining: dict[int, _Joining]
    """By broker id."""
    leaving: set[int]


class InSyncCounts:
    """Results of the changes since the start: Kafka's `IsrShrinks`, `IsrExpands` and `FailedIsrUpdates`."""

    def __init__(self) -> None:
        self.shrinks = 0
        self.expands = 0
        self.failed = 0


class InSyncReplicas:
    """Collects ISR changes and requests them from the controller."""

    def __init__(
        self,
        node_id: int,
        data_plane: DataPlane,
        *,
        image: Callable[[], MetadataImage],
        find: Callable[[str, int], Partition | None],
        alter_partitions: Callable[[Sequence[InSyncChange]], Awaitable[Sequence[InSyncResult]]],
        broker_epoch: Callable[[], int],
    ) -> None:
        """`image` returns the image published in the data plane; `find` returns the partition open here."""
        self._node_id = node_id
        self._data_plane = data_plane
        self._image = image
        self._find = find
        self._alter_partitions = alter_partitions
        self._broker_epoch = broker_epoch
        self._wanted_changes: dict[Key, _WantedChange] = {}
        # Partition epochs at which a response arrived: nothing is requested again before the image has a newer epoch.
        self._responded: dict[Key, int] = {}
        self._querying: asyncio.Task[None] | None = None
        self._stopped = False
        self.counts = InSyncCounts()

    def caught_up(self, event: ReplicaCaughtUp) -> None:
        """Process a follower outside of the ISR that has caught up with the high watermark."""
        wanted = self._wanted_change((event.topic_id, event.index), event.leader_epoch)
        wanted.joining[event.replica] = _Joining(event.broker_epoch, event.partition_epoch)
        self._begin()

    def step_lag(self, partitions: Sequence[Partition], max_lag_ms: int) -> None:
        """Find in-sync replicas that lag; called every half of replica.lag.time.max.ms."""
        alive = plan_eligible(self._image().cluster)
        for place, leader_epoch, replicas in lagging_replicas(
            partitions, self._data_plane, max_lag_ms=max_lag_ms, alive=alive
        ):
            partition = partitions[place]
            self._wanted_change((partition.topic_id, partition.index), leader_epoch).leaving.update(replicas)
        self._begin()

    def published(self, image: MetadataImage) -> None:
        """Process a newly published image: it contains the results of earlier requests."""
        for key, partition_epoch in list(self._responded.items()):
            partition = _partition(image, key)
            if partition is None or partition.partition_epoch > partition_epoch:
                del self._responded[key]
        self._begin()

    async def stop(self) -> None:
        """Stop sending requests."""
        self._stopped = True
        if self._querying is not None:
            self._querying.cancel()
            await asyncio.wait([self._querying])

    def _wanted_change(self, key: Key, leader_epoch: int) -> _WantedChange:
        wanted = self._wanted_changes.get(key)
        if wanted is None or wanted.leader_epoch < leader_epoch:
            wanted = self._wanted_changes[key] = _WantedChange(leader_epoch, {}, set())
        return wanted

    def _begin(self) -> None:
        if self._wanted_changes and self._querying is None and not self._stopped:
            self._querying = asyncio.ensure_future(self._query())

    async def _query(self) -> None:
        """Request all changes, one request after the other, until none can be sent now."""
        try:
            while changes := self._build_changes():
                sizes = {(change.topic_id, change.partition): self._in_sync(change) for change in changes}
                try:
                    results = await self._alter_partitions(changes)
                except Exception as error:  # noqa: BLE001 - whatever the channel raises, the request is retried
                    log.info("Retrying the ISR changes of %d partitions: %s", len(changes), error)
                    await asyncio.sleep(_AGAIN_S)
                    continue
                requested = {(change.topic_id, change.partition): change for change in changes}
                for result in results:
                    self._count(result, requested, sizes)
                retried = [self._take(result, requested) for result in results]
                if any(retried):
                    await asyncio.sleep(_AGAIN_S)
        finally:
            self._querying = None

    def _build_changes(self) -> list[InSyncChange]:
        image, changes = self._image(), []
        for key, wanted in list(self._wanted_changes.items()):
            if key in self._responded:
                continue
            if _is_ahead(wanted, _partition(image, key)):
                continue
            change = self._build_change(image, key, wanted)
            if change is None:
                del self._wanted_changes[key]
            else:
                changes.append(change)
        return changes

    def _build_change(self, image: MetadataImage, key: Key, wanted: _WantedChange) -> InSyncChange | None:
        partition = _partition(image, key)
        if partition is None or partition.leader != self._node_id or partition.leader_epoch != wanted.leader_epoch:
            return None
        for id_, joined in list(wanted.joining.items()):
            if joined.partition_epoch < partition.partition_epoch:
                # It is reported again once it has caught up with the current high watermark.
                del wanted.joining[id_]
        joining = {id_: joined.broker_epoch for id_, joined in wanted.joining.items()}
        refused = [id_ for id_, epoch in joining.items() if not _is_eligible(image.cluster, id_, epoch)]
        self._stop_joining(image, key, refused)
        joining = {id_: epoch for id_, epoch in joining.items() if id_ not in refused}
        kept = [id_ for id_ in partition.isr if id_ not in wanted.leaving or id_ in joining]
        isr = tuple(kept) + tuple(id_ for id_ in joining if id_ not in kept and id_ in partition.replicas)
        if set(isr) == set(partition.isr):
            return None
        epochs = {**joining, self._node_id: self._broker_epoch()}
        return InSyncChange(
            topic_id=key[0],
            partition=key[1],
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            isr=tuple((id_, epochs.get(id_, NO_BROKER_EPOCH)) for id_ in isr),
            # An uncleanly elected leader has recovered when it leads (KIP-704): it truncates no records of its own.
            leader_recovery_state=_RECOVERED,
        )

    def _in_sync(self, change: InSyncChange) -> int:
        partition = _partition(self._image(), (change.topic_id, change.partition))
        return 0 if partition is None else len(partition.isr)

    def _count(self, result: InSyncResult, requested: dict[Key, InSyncChange], sizes: dict[Key, int]) -> None:
        change = requested.get((result.topic_id, result.partition))
        if change is None:
            return
        before, after = sizes[change.topic_id, change.partition], len(change.isr)
        if result.error_code != ErrorCode.NONE:
            self.counts.failed += 1
        elif result.partition_epoch > change.partition_epoch:
            self.counts.shrinks += after < before
            self.counts.expands += after > before

    def _take(self, result: InSyncResult, requested: dict[Key, InSyncChange]) -> bool:
        """Process the result of a change; returns whether to request it again."""
        key = (result.topic_id, result.partition)
        change = requested.get(key)
        if change is None:
            return False
        is_unchanged = result.error_code == ErrorCode.NONE and 0 <= result.partition_epoch <= change.partition_epoch
        if is_unchanged or result.error_code in _NOT_LET_IN:
            wanted = self._wanted_changes.pop(key, None)
            self._stop_joining(self._image(), key, list(wanted.joining) if wanted is not None else [])
            return False
        if result.error_code not in _AWAITS_METADATA:
            return True
        # Replicas that caught up are requested with the next image; lagging replicas are determined again.
        wanted = self._wanted_changes.get(key)
        if wanted is not None:
            wanted.leaving.clear()
        partition = _partition(self._image(), key)
        if partition is not None and partition.partition_epoch <= change.partition_epoch:
            self._responded[key] = change.partition_epoch
        return False

    def _stop_joining(self, image: MetadataImage, key: Key, replicas: list[int]) -> None:
        topic = image.topics.by_id.get(key[0])
        partition = None if topic is None or not replicas else self._find(topic.name, key[1])
        if partition is not None:
            stop_joining(partition, self._data_plane, replicas)


def _partition(image: MetadataImage, key: Key) -> PartitionImage | None:
    topic = image.topics.by_id.get(key[0])
    return None if topic is None else topic.partitions.get(key[1])


def _is_ahead(wanted: _WantedChange, partition: PartitionImage | None) -> bool:
    """Return whether a change belongs to a role that the data plane has before its image is published."""
    if partition is None or partition.leader_epoch != wanted.leader_epoch:
        return partition is not None and partition.leader_epoch < wanted.leader_epoch
    return any(joined.partition_epoch > partition.partition_epoch for joined in wanted.joining.values())


def _is_eligible(cluster: ClusterImage, broker_id: int, broker_epoch: int) -> bool:
    """Return whether a broker may be in sync: it is neither fenced nor shutting down, and has this epoch."""
    broker = cluster.brokers.get(broker_id)
    if broker is None or not may_be_in_sync(broker):
        return False
    return broker_epoch in (NO_BROKER_EPOCH, broker.epoch)
