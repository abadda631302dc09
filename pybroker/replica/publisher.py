"""Applies the metadata to partitions: opens them, changes their roles, or deletes them; then publishes the image.

Owns the order of those steps and the topic table that the data plane uses. Must not decide anything about the cluster.
The loader passes images on the loop thread. Worker threads do the disk work for one image after the other, and skip
images that are outdated by then. A request that created a topic waits for `published`.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pybroker.config.topic import TopicConfig
from pybroker.metadata.image import EMPTY_IMAGE
from pybroker.metadata.internal_topics import INTERNAL_TOPICS
from pybroker.metadata.replica_directories import directory_of
from pybroker.replica.endpoints import plan_endpoints
from pybroker.replica.native import PartitionEntry, TopicEntry, TopicTable, become_roles
from pybroker.replica.native import Role as NativeRole
from pybroker.replica.read_replicas import plan_read_replicas
from pybroker.replica.roles import Follower, Leader, NoRole, plan_registered, plan_role, plan_roles
from pybroker.replica.sources import plan_sources
from pybroker.replica.throttled import throttled_sides
from pybroker.storage.exhaustion import is_exhaustion, limits
from pybroker.storage.log_config import build_log_config
from pybroker.storage.opening import OpeningQueue, Recoveries
from pybroker.storage.partitions import Opening

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from concurrent.futures import Executor
    from pathlib import Path

    from pybroker.config.broker import BrokerConfig
    from pybroker.metadata.delta import MetadataDelta
    from pybroker.metadata.image import MetadataImage, PartitionImage, TopicImage
    from pybroker.replica.endpoints import Endpoint
    from pybroker.replica.native import DataPlane
    from pybroker.replica.read_replicas import ReadReplicas
    from pybroker.replica.roles import Role
    from pybroker.replica.sources import Source
    from pybroker.storage.native import LogConfig, Partition
    from pybroker.storage.partitions import Partitions

log = logging.getLogger("pybroker.replica")

_REPORT_EVERY_S = 1.0  # interval of recovery progress reports
_AGAIN_S = 1.0  # backoff for partitions that lacked a descriptor or memory

Placed = tuple[bytes, int]
"""Topic id and index."""


class _Change(NamedTuple):
    """The changes of this broker's topics between two images."""

    removed: list[TopicImage]
    added: list[TopicImage]


class _Wanted(NamedTuple):
    """A partition to open on this broker."""

    key: tuple[str, int]
    topic_id: bytes
    image: PartitionImage
    role: Role
    settings: TopicConfig


class PartitionPublisher:
    """Applies the metadata image to partitions and the topic table."""

    def __init__(
        self,
        config: BrokerConfig,
        partitions: Partitions,
        data_plane: DataPlane,
        workers: Executor,
        published: Callable[[MetadataImage], None] | None = None,
        placed: Callable[[Mapping[Placed, bytes]], None] | None = None,
    ) -> None:
        """`published` is called with each published image, before the callers that wait for this image resume.

        `placed` is called with the directory ids of partitions, by topic id and index, that differ from the image.
        """
        self._config = config
        self._partitions = partitions
        self._data_plane = data_plane
        self._workers = workers
        self.recoveries = Recoveries()
        # Whether the broker's configuration changed since it was last applied to the logs.
        self._reconfigured = False
        # Invariant: the configuration of each topic in `_published`, as applied to its logs.
        self._settings: dict[str, TopicConfig] = {}
        self._on_published = published
        self._on_placed = placed
        # Invariant: the endpoints of the other brokers in `_published`, as in `_table`.
        self._endpoints: dict[str, list[Endpoint]] = {}
        # Invariant: the brokers whose replicas may be in sync, as in `_table`; None before the first table.
        self._eligible: list[tuple[int, int]] | None = None
        # Invariant: the fetch sources that were last passed to the data plane.
        self._sources: list[Source] = []
        # Invariant: the racks that were last passed to the data plane for fetches from followers.
        self._read_replicas: ReadReplicas | None = None
        self._table = TopicTable(brokers={})
        # Invariant: `_table` and the open partitions show exactly this image.
        self._published = EMPTY_IMAGE
        self._newest = EMPTY_IMAGE
        # First offset of images to publish; None while the broker is not registered.
        self._since: int | None = 0
        # Why partitions are not open here, or lack their role. Those that lacked a descriptor or memory are retried.
        # Written by the workers too.
        self._failures: dict[tuple[str, int], Exception] = {}
        self._again: asyncio.TimerHandle | None = None
        self._retrying = False
        self._stopped = False
        self._is_short = False  # whether the retry was logged
        self._work: asyncio.Task[None] | None = None
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []

    def publish(self, _delta: MetadataDelta, image: MetadataImage, /) -> None:
        """Accept a newer image and apply it in the background."""
        self._newest = image
        self._begin()

    def hold(self) -> None:
        """Publish no image before `release`. An image from before this broker's registration may make it the leader,
        based on the previous process, whose log may have had more records.
        """
        self._since = None

    def release(self, offset: int) -> None:
        """Publish images from the one at `offset` on: it contains this broker's registration."""
        self._since = offset
        self._begin()

    def _begin(self) -> None:
        if self._since is None or self._newest.offset < self._since:
            return
        if self._work is None:
            self._work = asyncio.ensure_future(self._catch_up())

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply the broker's changed configuration; with the next image every topic inherits from it."""
        self._config = config
        self._reconfigured = True

    def settings_of(self, topic: str) -> TopicConfig | None:
        """Return a topic's configuration, None for a topic without replicas here. Safe to call from any thread."""
        return self._settings.get(topic)

    @property
    def offset_in_force(self) -> int:
        """Offset of the newest image that is published here, -1 before the first."""
        return self._published.offset

    @property
    def image_in_force(self) -> MetadataImage:
        """The newest image that is published here."""
        return self._published

    async def published(self, offset: int) -> None:
        """Wait until the image at `offset`, or a newer one, is published here."""
        if self._published.offset >= offset:
            return
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.append((offset, waiting))
        await waiting

    async def stop(self) -> None:
        """Wait for the work in progress; failures are not retried."""
        self._stopped = True
        if self._again is not None:
            self._again.cancel()
        if self._work is not None:
            await self._work
        # The callbacks reference this publisher: until a garbage collection, the cycle would keep logs open.
        self._on_published = self._on_placed = None

    def failure_of(self, topic: str, first: int = 0) -> str | None:
        """Return why a partition of a topic, with index `first` or higher, is not open here; None if all are open."""
        for (name, index), error in self._failures.items():
            if name == topic and index >= first:
                again = f"; {limits()}; it is tried again" if is_exhaustion(error) else ""
                return f"the log of {name}-{index} cannot be opened: {error}{again}"
        return None

    def directory_failed(self, path: str) -> None:
        """Remove the partitions of a failed directory from the table."""
        lost = self._partitions.fail(path)
        topics = {partition.topic for partition in lost}
        images = [self._published.topics.by_name[topic] for topic in topics if topic in self._published.topics.by_name]
        self._show(upsert=images, remove=[])
        self._report(images)
        # Last: a client whose delayed request completes now, and is sent again, finds the table changed.
        for partition in lost:
            partition.fail(self._data_plane)

    def moved(self, topic: str) -> None:
        """Report the directories of a topic's partitions after a move of one of them."""
        image = self._published.topics.by_name.get(topic)
        if image is not None:
            self._report([image])

    async def _catch_up(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._newest is not self._published or self._retrying:
                image = self._newest
                change = self._changed_by(image)
                self._reconfigured = self._retrying = False
                for topic in change.removed:
                    self._retire(topic)
                    self._settings.pop(topic.name, None)
                    self._failures = {key: error for key, error in self._failures.items() if key[0] != topic.name}
                self._show(upsert=[], remove=[topic.name for topic in change.removed])
                self._set_sources(image)
                for topic in change.removed:
                    await loop.run_in_executor(self._workers, self._delete, topic)
                if change.removed:
                    # A new topic of the same name must not inherit offsets.
                    await self._write_checkpoints()
                queues = await loop.run_in_executor(self._workers, self._plan, change.added, image)
                threads = self._config.num_recovery_threads_per_data_dir
                drains = [queue.drain for queue in queues for _ in range(min(threads, len(queue)))]
                opening = asyncio.gather(*(loop.run_in_executor(self._workers, drain) for drain in drains))
                while not (await asyncio.wait([opening], timeout=_REPORT_EVERY_S))[0]:
                    for queue in queues:
                        queue.report()
                await opening
                is_other = self._take_brokers(image)
                self._show(upsert=list(image.topics.by_id.values()) if is_other else change.added, remove=[])
                self._set_read_replicas(image)
                self._report(change.added)
                self._published = image
                if self._on_published is not None:
                    self._on_published(image)
                self._wake(image.offset)
                self._try_again_later()
        except Exception as error:
            log.exception("Failed to apply the metadata at offset %d", self._newest.offset)
            for _, waiting in self._waiting:
                if not waiting.done():  # it may be cancelled
                    waiting.set_exception(error)
            self._waiting.clear()
        finally:
            self._work = None

    def _set_sources(self, image: MetadataImage) -> None:
        """Pass the other brokers' endpoints to the data plane, before roles name leaders to follow."""
        name = self._config.inter_broker_listener
        sources = plan_sources(image.cluster, name, self._config.node_id)
        if sources != self._sources:
            self._sources = sources
            self._data_plane.set_fetch_sources(sources)

    def _set_read_replicas(self, image: MetadataImage) -> None:
        """Pass the racks for fetches from followers to the data plane (KIP-392)."""
        planned = plan_read_replicas(image.cluster, self._config)
        if planned == self._read_replicas:
            return
        self._read_replicas = planned
        if planned is None:
            self._data_plane.clear_read_replicas()
        else:
            self._data_plane.set_read_replicas(own_rack=planned.own_rack, others=planned.others)

    async def _write_checkpoints(self) -> None:
        loop = asyncio.get_running_loop()
        while not await loop.run_in_executor(self._workers, self._partitions.write_checkpoints) and not self._stopped:
            await asyncio.sleep(_AGAIN_S)

    def _changed_by(self, image: MetadataImage) -> _Change:
        """Return the changes of an image, and the topics with partitions to retry."""
        change = _compare(self._published, image, all_changed=self._reconfigured)
        if self._retrying:
            names = {name for (name, _), error in self._failures.items() if is_exhaustion(error)}
            topics = [image.topics.by_name[name] for name in names if name in image.topics.by_name]
            change.added.extend(topic for topic in topics if topic not in change.added)
        return change

    def _try_again_later(self) -> None:
        """Schedule a retry of partitions that lacked a descriptor or memory; logs the first retry and the recovery."""
        if self._stopped:
            return
        exhausted = [error for error in self._failures.values() if is_exhaustion(error)]
        if exhausted and not self._is_short:
            log.error(
                "%d partitions cannot be opened or have no leader: %s; %s", len(exhausted), exhausted[0], limits()
            )
            log.error("Retrying these partitions every %g s", _AGAIN_S)
        elif self._is_short and not exhausted:
            log.info("the partitions that lacked descriptors or memory are open")
        self._is_short = bool(exhausted)
        if exhausted and self._again is None:
            self._again = asyncio.get_running_loop().call_later(_AGAIN_S, self._try_again)

    def _try_again(self) -> None:
        self._again = None
        self._retrying = True
        self._begin()

    def _report(self, topics: Iterable[TopicImage]) -> None:
        """Report the directories of partitions that differ from the image (KIP-858)."""
        if self._on_placed is None:
            return
        placed = {}
        for topic in topics:
            for index, partition in self._here(topic):
                directory = self._partitions.directory_id(topic.name, index)
                if directory is not None and directory != directory_of(partition, self._config.node_id):
                    placed[topic.topic_id, index] = directory
        if placed:
            self._on_placed(placed)

    def _wake(self, offset: int) -> None:
        still_waiting = []
        for wanted, waiting in self._waiting:
            if wanted > offset:
                still_waiting.append((wanted, waiting))
            elif not waiting.done():
                waiting.set_result(None)
        self._waiting = still_waiting

    def _plan(self, topics: list[TopicImage], image: MetadataImage) -> list[OpeningQueue[_Wanted]]:
        """Return the partitions of the topics to open, by directory; closes those without a replica on this broker."""
        self._leave(topics)
        recovering = self._partitions.to_recover
        wanted: dict[Path | None, list[tuple[_Wanted, int]]] = {}
        for topic in topics:
            settings = self._settings[topic.name] = self._topic_config(topic, image)
            for index, role in plan_roles(topic, self._config.node_id).items():
                directory = self._partitions.directory_of(topic.name, index)
                unread = self._partitions.bytes_to_recover(topic.name, index) if directory in recovering else 0
                one = _Wanted((topic.name, index), topic.topic_id, topic.partitions[index], role, settings)
                wanted.setdefault(directory, []).append((one, unread))
        return [self._queue_of(path, waiting, reported=path in recovering) for path, waiting in wanted.items()]

    def _queue_of(self, at: Path | None, them: list[tuple[_Wanted, int]], *, reported: bool) -> OpeningQueue[_Wanted]:
        recovered = partial(self._partitions.recovered_bytes, at) if reported and at is not None else None
        return self.recoveries.queue(OpeningQueue(at, them, self._open_all, recovered=recovered))

    def _leave(self, topics: list[TopicImage]) -> None:
        """Close and delete the open partitions of which this broker is not a replica any more."""
        node_id = self._config.node_id
        left = []
        for topic in topics:
            for index, image in topic.partitions.items():
                partition = None if node_id in image.replicas else self._partitions.get(topic.name, index)
                if partition is not None:
                    left.append((partition, NativeRole.none(plan_role(image, node_id).epoch)))
        for (partition, _), failure in zip(left, become_roles(left, self._data_plane), strict=True):
            if failure is not None:
                log.error("Failed to change the role of partition %s-%d: %s", partition.topic, partition.index, failure)
                continue
            partition.retire(self._data_plane)
            try:
                self._partitions.delete(partition.topic, partition.index)
            except OSError as error:
                log.error("partition %s-%d cannot be deleted: %s", partition.topic, partition.index, error)

    def _open_all(self, wanted: list[_Wanted]) -> None:
        """Open partitions and apply their roles; a failure of one does not affect the others."""
        served = {it.key: it for it in wanted if not self._partitions.is_lost(*it.key)}
        shared: dict[int, LogConfig] = {}
        configs = {key: _config_of(it.settings, shared) for key, it in served.items()}
        opened = self._partitions.open_all([self._opening(it, configs[key]) for key, it in served.items()])
        roles = {}
        for key, it in served.items():
            partition = opened[key]
            if isinstance(partition, Exception):
                self._note(it, partition)
                continue
            self._failures.pop(key, None)
            if it.topic_id in self._published.topics.by_id:
                partition.set_config(configs[key])
            sides = throttled_sides(it.settings, partition.index, self._config.node_id)
            partition.set_throttled(leader=sides.leader, follower=sides.follower)
            roles[key] = (partition, _native_role(it.role, it.settings.min_insync_replicas))
        for key, failure in zip(roles, become_roles(list(roles.values()), self._data_plane), strict=True):
            if failure is not None:
                self._note(served[key], failure)
                if isinstance(failure, OSError) and not is_exhaustion(failure):  # else no client would be served
                    self._partitions.role_failed(*key, failure)

    def _note(self, wanted: _Wanted, error: Exception) -> None:
        """Record why a partition is not open, or lacks its role. Failures that are retried are not logged here."""
        self._failures[wanted.key] = error
        if not is_exhaustion(error):
            # A ValueError is a log that is damaged beyond recovery.
            log.error("partition %s-%d cannot be opened: %s", *wanted.key, error)

    def _opening(self, wanted: _Wanted, config: LogConfig) -> Opening:
        return Opening(wanted.key, wanted.topic_id, config, directory_of(wanted.image, self._config.node_id))

    def _topic_config(self, topic: TopicImage, image: MetadataImage) -> TopicConfig:
        config, faults = TopicConfig.stored(image.configs.of_topic(topic.name), self._config)
        for fault in faults:
            log.warning("topic %s: ignoring a stored setting: %s", topic.name, fault)
        return config

    def _here(self, topic: TopicImage) -> Iterable[tuple[int, PartitionImage]]:
        node_id = self._config.node_id
        return ((index, partition) for index, partition in topic.partitions.items() if node_id in partition.replicas)

    def _retire(self, topic: TopicImage) -> None:
        for index, _ in self._here(topic):
            partition = self._partitions.get(topic.name, index)
            if partition is not None:
                partition.retire(self._data_plane)

    def _delete(self, topic: TopicImage) -> None:
        for index, _ in self._here(topic):
            try:
                self._partitions.delete(topic.name, index)
            except OSError as error:
                log.error("partition %s-%d cannot be deleted: %s", topic.name, index, error)

    def _show(self, *, upsert: list[TopicImage], remove: list[str]) -> None:
        if not upsert and not remove:
            return  # an empty table contains no leaders
        self._table = self._table.replace(upsert=[self._entry(topic) for topic in upsert], remove=remove)
        self._data_plane.publish(self._table)

    def _take_brokers(self, image: MetadataImage) -> bool:
        """Put endpoints and eligible brokers into the table; returns whether the table was created anew."""
        endpoints, eligible = plan_endpoints(image.cluster, self._config.node_id), plan_registered(image.cluster)
        is_other = endpoints != self._endpoints
        if is_other:
            self._endpoints = endpoints
            self._table = TopicTable(brokers=endpoints)
        if is_other or eligible != self._eligible:
            self._eligible = eligible
            self._table = self._table.with_eligible(eligible)
            if not is_other:
                self._data_plane.publish(self._table)
        return is_other

    def _entry(self, topic: TopicImage) -> TopicEntry:
        return TopicEntry(
            name=topic.name,
            topic_id=topic.topic_id,
            internal=topic.name in INTERNAL_TOPICS,
            partitions=[
                PartitionEntry(
                    index=index,
                    partition=self._open_partition(topic.name, index),
                    offline=self._partitions.is_lost(topic.name, index),
                    leader=partition.leader,
                    leader_epoch=partition.leader_epoch,
                )
                for index, partition in topic.partitions.items()
            ],
        )

    def _open_partition(self, topic: str, index: int) -> Partition | None:
        return self._partitions.get(topic, index)


def _native_role(role: Role, min_insync_replicas: int) -> NativeRole:
    match role:
        case Leader(epoch, followers, partition_epoch):
            return NativeRole.leader(
                epoch,
                partition_epoch=partition_epoch,
                followers=followers,
                min_insync_replicas=min_insync_replicas,
            )
        case Follower(leader, epoch):
            return NativeRole.follower(epoch, leader=leader)
        case NoRole(epoch):
            return NativeRole.none(epoch)


def _config_of(settings: TopicConfig, shared: dict[int, LogConfig]) -> LogConfig:
    """Return the configuration of a log, which partitions of a topic share unless each has a random jitter."""
    if settings.segment_jitter_ms:
        return build_log_config(settings)
    config = shared.get(id(settings))
    if config is None:
        config = shared[id(settings)] = build_log_config(settings)
    return config


def _compare(old: MetadataImage, new: MetadataImage, *, all_changed: bool) -> _Change:
    """Return deleted topics, and new or changed topics; a topic created again with its name is in both."""
    before, after = old.topics.by_id, new.topics.by_id
    removed = [topic for topic_id, topic in before.items() if topic_id not in after]
    added = [
        topic
        for topic_id, topic in after.items()
        if all_changed
        or before.get(topic_id) is not topic
        or old.configs.of_topic(topic.name) is not new.configs.of_topic(topic.name)
    ]
    return _Change(removed, added)
