"""The group coordinator as the rest of the broker sees it: a group's event in, its reply out when it is committed.

Owns one runner and machine for each partition of `__consumer_offsets` that this broker leads: loading at election,
unloading at resignation. Follows the metadata image, after its partitions are open here. Must not know requests'
envelopes, nor what a partition is: logs are handed in.

What was appended may be yet to be synced (`flush=group`, `log.flush.interval.messages`): a thread of the data plane
does that, an event reports it, and the loop goes on meanwhile.

Loading streams the log through the machine's `apply` in chunks, between which the loop goes on; meanwhile events are
refused with COORDINATOR_LOAD_IN_PROGRESS.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from pybroker.coordinator.group.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NotCoordinatorError,
)
from pybroker.coordinator.group.events import Loaded, TopicsDeleted
from pybroker.coordinator.group.group_change import GroupChange
from pybroker.coordinator.group.log import decode_records, encode_records
from pybroker.coordinator.group.machine import GroupMachine
from pybroker.coordinator.group.modern.settings import overlay
from pybroker.coordinator.group.offsets_topic import OFFSETS_TOPIC
from pybroker.coordinator.group.partitioning import partition_of
from pybroker.coordinator.group.shard import SHARD_LIFE, ShardState, ShardStep
from pybroker.coordinator.group.view import TopicInfo, Topics
from pybroker.machine.clock import SYSTEM_CLOCK
from pybroker.machine.machine import Timer
from pybroker.machine.parts import parts
from pybroker.machine.reply import Reply
from pybroker.machine.runner import Runner, UnwritableError
from pybroker.metadata.image import EMPTY_IMAGE
from pybroker.protocol.errors import ProtocolError
from pybroker.storage.errors import BatchTooLargeError, NotEnoughReplicasError, NotLeaderError
from pybroker.storage.exhaustion import is_exhaustion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pybroker.coordinator.group.group_change import Record
    from pybroker.coordinator.group.log import PartitionLog
    from pybroker.coordinator.group.modern.settings import ConsumerGroupSettings
    from pybroker.coordinator.group.settings import GroupSettings
    from pybroker.machine.clock import Clock
    from pybroker.machine.slices import Sliced
    from pybroker.metadata.image import MetadataImage, TopicImage, TopicsImage

log = logging.getLogger("pybroker.coordinator.group")

MAX_RECORDS_PER_BATCH = 2000
"""A wake-up with more goes into several appends; a single event may exceed it, as its records are never parted."""
_LOAD_BYTES = 256 * 1024
"""Read and replayed at once: a few milliseconds of the loop's time."""
_PROGRESS_S = 1.0
_MANY_GROUPS = 5_000
_AGAIN_S = 1.0  # a log that lacked a descriptor or memory is read again so much later


class GroupCoordinator:
    """The coordinators on this broker. Used from one event loop."""

    def __init__(
        self,
        settings: GroupSettings,
        *,
        node_id: int,
        partitions: int,
        codec: int,
        commit_timeout_ms: int,
        load_bytes: int,
        open_log: Callable[[int], PartitionLog | None],
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """`partitions` is how many the topic will have, `open_log` finds the log of one that this broker leads. A
        client that waits longer than `commit_timeout_ms` for a commit receives COORDINATOR_NOT_AVAILABLE.
        """
        self._clock = clock
        self._settings = settings
        self._node_id = node_id
        self._partitions = partitions
        self._codec = codec
        self._commit_timeout_ms = commit_timeout_ms
        self._load_bytes = min(load_bytes, _LOAD_BYTES)
        self._open_log = open_log
        # Invariant: exactly the partitions that this broker leads in `_image`.
        self._shards: dict[int, _Shard] = {}
        self._image = EMPTY_IMAGE
        # The settings of the groups that have some of their own in `_image`.
        self._of_groups: dict[str, ConsumerGroupSettings] = {}
        # The topics of `_image` as machines see them; None until somebody looks.
        self._topics: Topics | None = None
        # Offset of the first image that had the newest topic.
        self._topics_version = -1
        # Those with events that wait for `step`.
        self._touched: list[_Shard] = []
        # Whether `step` will be called, by the loop or by the caller of `expect_step`.
        self._step_due = False
        # Appends that are being settled, by their ticket.
        self._settling: dict[int, _Settling] = {}
        self._tickets = count()
        # The last reason that was logged why the topic could not be created.
        self._refusal: str | None = None
        self._closings: set[asyncio.Task[None]] = set()
        self._closed = False

    def follow(self, image: MetadataImage) -> None:
        """Take note of a newer image, whose partitions are open here: be elected, resign, forget deleted topics."""
        before, self._image = self._image, image
        self._elect_again()
        if image.configs is not before.configs:
            self._take_settings()
        if image.topics is before.topics or self._closed:
            return
        self._topics = None
        if image.topics.by_id.keys() - before.topics.by_id.keys():
            self._topics_version = image.offset
        topic = image.topics.by_name.get(OFFSETS_TOPIC)
        leader_epochs = {}
        if topic is not None:
            self._partitions = len(topic.partitions)
            for index, partition in topic.partitions.items():
                if partition.leader == self._node_id:
                    leader_epochs[index] = partition.leader_epoch
        for index, shard in list(self._shards.items()):
            if leader_epochs.get(index) != shard.epoch:
                self._resign(index)
        for index, epoch in leader_epochs.items():
            if index not in self._shards:
                self._elect(index, epoch)
        self._forget_deleted(before.topics, image.topics)

    def _elect_again(self) -> None:
        """Load what could not be loaded because its log was not open, where it is open now."""
        for index, shard in list(self._shards.items()):
            if shard.state is ShardState.FAILED and shard.lacked_log and self._open_log(index) is not None:
                self._resign(index)
                self._elect(index, shard.epoch)

    def reconfigure(self, settings: GroupSettings) -> None:
        """Take the broker's changed settings; they hold for what is decided from now on."""
        self._settings = settings
        for shard in self._shards.values():
            if shard.machine is not None:
                shard.machine.state.settings = settings
        self._take_settings()

    def _take_settings(self) -> None:
        consumer = self._settings.consumer
        self._of_groups = {group: overlay(consumer, own) for group, own in self._image.configs.of_groups().items()}

    async def loaded(self) -> None:
        """Wait until no coordinator is being loaded."""
        while loading := [shard.loading for shard in self._shards.values() if shard.state is ShardState.LOADING]:
            await asyncio.wait(loading)

    def note_refusal(self, refusal: str, settings: Mapping[str, int]) -> None:
        """Warn that the topic cannot be created with these settings; once, for clients ask for it again and again."""
        if refusal != self._refusal:
            self._refusal = refusal
            log.warning("%s; %s", refusal, ", ".join(f"{name}={value}" for name, value in settings.items()))

    def partition_for(self, group_id: str) -> int:
        """Return the partition of `__consumer_offsets` that a group belongs to."""
        return partition_of(group_id, self._partitions)

    def submit(self, group_id: str, event: Any) -> Reply:
        """Hand in an event of a group; raises a `GroupError` when this broker does not coordinate it."""
        return self.submit_to(partition_of(group_id, self._partitions), event)

    def submit_to(self, partition: int, event: Any) -> Reply:
        """Hand in an event of several groups of one partition; raises as `submit`."""
        shard = self._shards.get(partition)
        if shard is None or shard.runner is None:
            raise self._refusal_of(shard)
        reply = Reply()
        shard.runner.queue(event, reply)
        if not shard.touched:
            self._touch(shard)
        return reply

    async def submit_all(self, event: Any) -> list[Any]:
        """Hand in an event for every coordinator on this broker, one after the other; return what each says.

        Raises as `submit` while one is being loaded.
        """
        if self._closed:
            raise CoordinatorNotAvailableError
        shards = {index: shard for index, shard in self._shards.items() if shard.state is not ShardState.FAILED}
        for shard in shards.values():
            if shard.runner is None:
                raise self._refusal_of(shard)
        return [await self.submit_to(index, event) for index in shards]

    def expect_step(self) -> None:
        """Take note that `step` will be called before the loop's next turn, which needs not be asked for it then."""
        self._step_due = True

    def step(self) -> None:
        """Handle what was handed in since the last step."""
        self._step_due = False
        while self._touched:
            touched, self._touched = self._touched, []
            for shard in touched:
                shard.touched = False
                if shard.runner is not None:
                    shard.runner.step()

    async def close(self) -> None:
        """Resign from everything: a client that waits for a reply gets an error, and looks for another coordinator."""
        self._closed = True
        for index in list(self._shards):
            self._resign(index)
        if self._closings:
            # A disk that hangs does not hold up the stop.
            await asyncio.wait(self._closings, timeout=self._commit_timeout_ms / 1000)

    def append_settled(self, ticket: int) -> None:
        """Take note that an append was synced, or could not be: its replies are completed."""
        settling = self._settling.pop(ticket)
        if settling.log.has_settled(settling.end_offset):
            settling.committed(None, None)
        else:
            settling.committed(None, NotCoordinatorError("the log could not be synced"))
        self._touch(settling.shard)

    def _refusal_of(self, shard: _Shard | None) -> Exception:
        """Return why a coordinator that has no runner takes no events."""
        if shard is None:
            return CoordinatorNotAvailableError() if self._closed else NotCoordinatorError()
        return CoordinatorLoadInProgressError() if shard.state is ShardState.LOADING else NotCoordinatorError()

    def _touch(self, shard: _Shard) -> None:
        """Have a shard's runner step with the others; what has no events is passed over."""
        shard.touched = True
        self._touched.append(shard)
        if not self._step_due:
            self._step_due = True
            asyncio.get_running_loop().call_soon(self.step)

    def _elect(self, index: int, epoch: int) -> None:
        shard = self._shards[index] = _Shard(index, epoch)
        opened = self._open_log(index)
        shard.loading = asyncio.ensure_future(self._load(shard, opened))

    def _resign(self, index: int) -> None:
        shard = self._shards.pop(index)
        shard.step(ShardStep.RESIGN)
        shard.loading.cancel()
        runner, shard.runner = shard.runner, None
        if runner is not None:
            closing = asyncio.ensure_future(runner.close())
            self._closings.add(closing)
            closing.add_done_callback(self._closings.discard)
        level = logging.DEBUG if self._closed else logging.INFO
        log.log(level, "no longer coordinating the groups of %s-%d", OFFSETS_TOPIC, index)

    async def _load(self, shard: _Shard, opened: PartitionLog | None) -> None:
        try:
            while True:
                try:
                    runner = await self._make_runner(shard, opened)
                    break
                except OSError as error:
                    if not is_exhaustion(error):
                        raise
                    log.warning("the groups of %s-%d are loaded later: %s", OFFSETS_TOPIC, shard.index, error)
                    await asyncio.sleep(_AGAIN_S)
        except Exception as error:
            shard.lacked_log = opened is None
            # Whatever it is: clients that receive COORDINATOR_LOAD_IN_PROGRESS would wait for the groups for ever.
            shard.step(ShardStep.FAIL)
            expected = isinstance(error, OSError | ValueError | ProtocolError | NotLeaderError)
            words = "the groups of %s-%d cannot be loaded: %s"
            log.error(words, OFFSETS_TOPIC, shard.index, error or repr(error), exc_info=None if expected else error)
            return
        shard.runner = runner
        shard.step(ShardStep.LOADED)
        runner.set_timers([Timer("loaded", self._clock.steady_ms(), Loaded())])

    async def _make_runner(self, shard: _Shard, opened: PartitionLog | None) -> Runner[Any, Record]:
        """Return a shard's runner with all that its log holds."""
        machine = shard.machine = GroupMachine(self._settings, self._now_topics, lambda: self._of_groups)
        if opened is None:
            raise NotLeaderError("the partition is not open here")
        await self._replay(shard.index, opened, machine)
        runner: Runner[Any, Record] = Runner(
            machine,
            lambda records: self._append(shard, opened, records),
            now=self._clock.steady_ms,
            max_records=MAX_RECORDS_PER_BATCH,
            timeout_ms=self._commit_timeout_ms,
            call_later=self._clock.call_later,
        )
        if len(machine.state.all_offsets()) >= _MANY_GROUPS:
            # What was loaded stays: full collections need not look at a million offsets again and again.
            gc.freeze()
        return runner

    async def _replay(self, index: int, opened: PartitionLog, machine: GroupMachine) -> None:
        loop = asyncio.get_running_loop()
        began = reported = time.monotonic()
        offset, end, replayed = opened.log_start_offset, opened.high_watermark, 0
        while offset < end:
            batches = await loop.run_in_executor(None, opened.read, offset, self._load_bytes)
            chunk = decode_records(batches)
            if chunk.size == 0:
                raise ValueError(f"the log ends at offset {offset}, not at its high watermark {end}")
            machine.load(chunk.records)
            offset, replayed = chunk.next_offset, replayed + len(chunk.records)
            if chunk.skipped:
                log.warning(
                    "%s-%d has %d records of unknown types below %d", OFFSETS_TOPIC, index, chunk.skipped, offset
                )
            if time.monotonic() - reported >= _PROGRESS_S:
                reported = time.monotonic()
                log.info("loading %s-%d: at offset %d of %d", OFFSETS_TOPIC, index, offset, end)
        log.log(
            logging.INFO if replayed else logging.DEBUG,
            "loaded %d groups from %d records of %s-%d in %d ms",
            len(machine.state.groups),
            replayed,
            OFFSETS_TOPIC,
            index,
            (time.monotonic() - began) * 1000,
        )

    def _append(self, shard: _Shard, opened: PartitionLog, records: Sequence[Record]) -> Reply | None:
        """Write what was decided down. With one replica it is committed when it is written, or synced."""
        now = self._clock.steady_ms()
        batches = encode_records(records, now, codec=self._codec, max_batch_bytes=opened.max_batch_bytes)
        committed = None
        if batches:
            try:
                end_offset = opened.append(batches, now)[1] + 1
            except (NotLeaderError, OSError) as error:
                raise NotCoordinatorError(str(error)) from error
            except NotEnoughReplicasError as error:
                raise CoordinatorNotAvailableError(str(error)) from error
            except BatchTooLargeError as error:
                raise UnwritableError(str(error)) from error
            if not opened.has_settled(end_offset):
                ticket, committed = next(self._tickets), Reply()
                self._settling[ticket] = _Settling(shard, opened, end_offset, committed)
                opened.settle(end_offset, ticket)
        for record in records:
            if type(record) is GroupChange and record.why:
                log.info("group %s rebalances: %s", record.group_id, record.why)
        return committed

    def _now_topics(self) -> Topics:
        if self._topics is None:
            self._topics = _build_topics(self._image, self._topics_version)
        return self._topics

    def _forget_deleted(self, before: TopicsImage, now: TopicsImage) -> None:
        gone = [(topic.name, topic_id) for topic_id, topic in before.by_id.items() if topic_id not in now.by_id]
        if gone:
            for shard in self._shards.values():
                if shard.runner is not None:
                    # As a timer's event it is tried again until it is committed.
                    key = "topics deleted", gone[0][1]
                    shard.runner.set_timers([Timer(key, self._clock.steady_ms(), TopicsDeleted(gone))])


class _Shard:
    """One partition that this broker leads."""

    def __init__(self, index: int, epoch: int) -> None:
        self.index = index
        self.epoch = epoch
        self.state = SHARD_LIFE.initial
        self.machine: GroupMachine | None = None
        self.loading: asyncio.Future[None]
        # Invariant: None unless the state is ACTIVE.
        self.runner: Runner[Any, Record] | None = None
        self.touched = False
        # Whether it has failed because its log was not open.
        self.lacked_log = False

    def step(self, what: ShardStep) -> None:
        self.state = SHARD_LIFE.following(self.state, what)


class _Settling(NamedTuple):
    """An append that is being synced."""

    shard: _Shard
    log: PartitionLog
    end_offset: int
    committed: Reply


def _build_topics(image: MetadataImage, version: int) -> Topics:
    racks = {broker.id: broker.rack for broker in image.cluster.brokers.values() if broker.rack is not None}
    return Topics(
        {
            name: TopicInfo(topic.topic_id, len(topic.partitions), _racks(topic, racks))
            for name, topic in image.topics.by_name.items()
        },
        {topic_id: topic.name for topic_id, topic in image.topics.by_id.items()},
        version,
    )


def _racks(topic: TopicImage, racks: Mapping[int, str]) -> tuple[tuple[str, ...], ...]:
    if not racks:
        return ()
    return tuple(
        tuple(racks[broker] for broker in partition.replicas if broker in racks)
        for partition in topic.partitions.values()
    )


def by_partition(
    group_ids: Iterable[str], coordinator: GroupCoordinator, most: int = 100
) -> Sliced[list[tuple[int, list[str]]]]:
    """Sort groups by the partition that they belong to; no more than `most` together, for one decision each."""
    sorted_out: dict[int, list[str]] = {}
    for group_id in group_ids:
        yield
        sorted_out.setdefault(coordinator.partition_for(group_id), []).append(group_id)
    return [(index, part) for index, groups in sorted_out.items() for part in parts(groups, most=most)]
