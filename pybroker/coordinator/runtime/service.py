"""The coordinator runtime: submits events of keys, and completes their replies when they are committed.

Owns one shard, with its machine and its runner, for each partition of an internal topic that this broker leads:
loading on election, unloading on resignation. Follows the metadata image after its partitions are opened here. Must not
know what is coordinated, nor what a partition is: the caller provides logs.

Events for a shard that is loading are rejected with COORDINATOR_LOAD_IN_PROGRESS, those for a partition that another
broker leads with NOT_COORDINATOR.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pybroker.coordinator.runtime.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NotCoordinatorError,
)
from pybroker.coordinator.runtime.loading import Source, replay
from pybroker.coordinator.runtime.machine import Loaded, ShardMachine
from pybroker.coordinator.runtime.shard import SHARD_LIFE, ShardState, ShardStep
from pybroker.machine.clock import SYSTEM_CLOCK
from pybroker.machine.machine import Timer
from pybroker.machine.reply import Reply
from pybroker.machine.runner import Runner, UnwritableError
from pybroker.protocol.errors import ProtocolError
from pybroker.storage.errors import BatchTooLargeError, NotEnoughReplicasError, NotLeaderError
from pybroker.storage.exhaustion import is_exhaustion

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from pybroker.coordinator.runtime.commits import CommitWaits
    from pybroker.coordinator.runtime.kind import CoordinatorKind, RuntimeSettings
    from pybroker.coordinator.runtime.log import PartitionLog
    from pybroker.machine.clock import Clock
    from pybroker.metadata.image import MetadataImage, TopicImage

log = logging.getLogger("pybroker.coordinator.runtime")

Record = TypeVar("Record")
KindMachine = TypeVar("KindMachine", bound=ShardMachine[Any])

MAX_RECORDS_PER_BATCH = 2000
"""More records are split into several appends; a single event may exceed the limit, as its records are never split."""
_LOAD_BYTES = 256 * 1024
"""Maximum size of one read and replay: a few milliseconds of the loop's time."""
_MANY_ENTRIES = 5_000
_AGAIN_S = 1.0  # backoff for a log that lacked a descriptor or memory


class CoordinatorRuntime(Generic[Record, KindMachine]):
    """The coordinators of one kind on this broker. Used from one event loop."""

    def __init__(
        self,
        kind: CoordinatorKind[Record, KindMachine],
        settings: RuntimeSettings,
        *,
        open_log: Callable[[int], PartitionLog | None],
        commits: CommitWaits,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        """`open_log` returns the log of a partition that this broker leads, None while it is not open here."""
        self._kind = kind
        self._settings = settings
        self._partition_of = kind.partition_of
        self._partitions = settings.partitions
        self._load_bytes = min(settings.load_bytes, _LOAD_BYTES)
        self._open_log = open_log
        self._commits = commits
        self._clock = clock
        # Timestamps in records are compared by other brokers and after restarts.
        self._now = clock.wall_ms
        # The topic of the newest image; None while it does not exist.
        self._topic: TopicImage | None = None
        # Invariant: exactly the partitions of `_topic` that this broker leads; none once it is closed.
        self._shards: dict[int, _Shard[Record, KindMachine]] = {}
        # Shards with events that wait for `step`.
        self._touched: list[_Shard[Record, KindMachine]] = []
        # Whether `step` will be called, by the loop or by the caller of `expect_step`.
        self._step_due = False
        self._closings: set[asyncio.Task[None]] = set()
        self._closed = False

    # ------------------------------------------------------------------------------------ election and resignation

    def follow(self, image: MetadataImage) -> None:
        """Apply a newer image, whose partitions are open here: load elected partitions, and resign from others."""
        self._elect_again()
        topic = image.topics.by_name.get(self._kind.topic)
        if topic is self._topic or self._closed:
            return
        self._topic = topic
        leader_epochs = {}
        if topic is not None:
            self._partitions = len(topic.partitions)
            for index, partition in topic.partitions.items():
                if partition.leader == self._settings.node_id:
                    leader_epochs[index] = partition.leader_epoch
        for index, shard in list(self._shards.items()):
            if leader_epochs.get(index) != shard.epoch:
                self._resign(index)
        for index, epoch in leader_epochs.items():
            if index not in self._shards:
                self._elect(index, epoch)

    async def loaded(self) -> None:
        """Wait until no shard is loading."""
        while loading := [shard.loading for shard in self._shards.values() if shard.state is ShardState.LOADING]:
            await asyncio.wait(loading)

    def machines(self) -> Iterator[KindMachine]:
        """Yield the machines of all shards, including those that are loading."""
        return (shard.machine for shard in list(self._shards.values()) if shard.machine is not None)

    async def close(self) -> None:
        """Resign from all partitions: waiting clients get an error, and find the coordinator again."""
        self._closed = True
        for index in list(self._shards):
            self._resign(index)
        if self._closings:
            # A disk that hangs must not delay the stop.
            await asyncio.wait(self._closings, timeout=self._settings.commit_timeout_ms / 1000)
        # Kinds and the runtime form a reference cycle, which would keep the data plane's files open until a collection.
        self._open_log = lambda _: None

    def _elect_again(self) -> None:
        """Load shards that failed because their log was not open, if it is open now."""
        for index, shard in list(self._shards.items()):
            if shard.state is ShardState.FAILED and shard.lacked_log and self._open_log(index) is not None:
                self._resign(index)
                self._elect(index, shard.epoch)

    def _elect(self, index: int, epoch: int) -> None:
        shard = self._shards[index] = _Shard(index, epoch)
        opened = self._open_log(index)
        shard.loading = asyncio.ensure_future(self._load(shard, opened))

    def _resign(self, index: int) -> None:
        shard = self._shards.pop(index)
        shard.step(ShardStep.RESIGN)
        if self._kind.observer is not None:
            self._kind.observer.resigned(index)
        shard.loading.cancel()
        runner, shard.runner, shard.log = shard.runner, None, None
        if runner is not None:
            closing = asyncio.ensure_future(runner.close())
            self._closings.add(closing)
            closing.add_done_callback(self._closings.discard)
        level = logging.DEBUG if self._closed else logging.INFO
        log.log(level, "no longer coordinating the %s of %s", self._kind.entries, self._name(index))

    async def _load(self, shard: _Shard[Record, KindMachine], opened: PartitionLog | None) -> None:
        entries, name = self._kind.entries, self._name(shard.index)
        try:
            while True:
                try:
                    runner = await self._make_runner(shard, opened)
                    break
                except OSError as error:
                    if not is_exhaustion(error):
                        raise
                    log.warning("Failed to load the %s of %s: %s; retrying", entries, name, error)
                    await asyncio.sleep(_AGAIN_S)
        except Exception as error:
            shard.lacked_log = opened is None
            # For any error: clients that receive COORDINATOR_LOAD_IN_PROGRESS would otherwise wait for ever.
            shard.step(ShardStep.FAIL)
            expected = isinstance(error, OSError | ValueError | ProtocolError | NotLeaderError)
            words = "the %s of %s cannot be loaded: %s"
            log.error(words, entries, name, error or repr(error), exc_info=None if expected else error)
            return
        shard.runner, shard.log = runner, opened
        shard.step(ShardStep.LOADED)
        runner.set_timers([Timer("loaded", self._now(), Loaded())])
        if opened is not None:
            self._begin_unfinished(shard, opened)

    async def _make_runner(
        self, shard: _Shard[Record, KindMachine], opened: PartitionLog | None
    ) -> Runner[Any, Record]:
        """Load a shard's log, and return its runner."""
        machine = shard.machine = self._kind.build_machine()
        if opened is None:
            raise NotLeaderError("the partition is not open on this broker")
        loop = asyncio.get_running_loop()
        source = Source(
            self._name(shard.index),
            opened,
            lambda offset: loop.run_in_executor(None, opened.read, offset, self._load_bytes),
        )
        await replay(source, self._kind, machine)
        runner: Runner[Any, Record] = Runner(
            machine,
            lambda records: self._append(shard, opened, records),
            now=self._now,
            max_records=MAX_RECORDS_PER_BATCH,
            timeout_ms=self._settings.commit_timeout_ms,
            call_later=self._clock.call_later,
            steady=self._clock.steady_ms,
        )
        if machine.entries() >= _MANY_ENTRIES:
            # Loaded objects stay alive: full collections need not visit a million records each time.
            gc.freeze()
        return runner

    def _begin_unfinished(self, shard: _Shard[Record, KindMachine], opened: PartitionLog) -> None:
        """Pass unfinished work of a loaded machine to the observer, once the loaded records are committed."""
        observer = self._kind.observer
        if observer is None or shard.machine is None or not (left := observer.unfinished(shard.machine)):
            return
        completed = self._commits.committed(opened, opened.log_end_offset, _nothing)
        if completed is None:
            self._notify(shard, left)
        else:
            completed.on_complete(lambda _value, error: None if error else self._notify(shard, left))

    def _notify(self, shard: _Shard[Record, KindMachine], records: Sequence[Record]) -> None:
        """Pass committed records to the observer, unless the shard has resigned meanwhile."""
        if self._kind.observer is not None and shard.state is ShardState.ACTIVE:
            self._kind.observer.committed(shard.index, shard.epoch, records)

    # ------------------------------------------------------------------------------------------------------ events

    def active(self) -> list[int]:
        """Return the partitions that accept events now."""
        return [index for index, shard in self._shards.items() if shard.runner is not None]

    def partition_for(self, key: str) -> int:
        """Return the partition of the topic for a key."""
        return self._partition_of(key, self._partitions)

    def submit(self, key: str, event: Any) -> Reply:
        """Submit an event of a key; raises a `CoordinatorError` if this broker does not coordinate it."""
        return self.submit_to(self._partition_of(key, self._partitions), event)

    def submit_to(self, partition: int, event: Any) -> Reply:
        """Submit an event of several keys of one partition; raises as `submit`."""
        shard = self._shards.get(partition)
        if shard is None or (runner := shard.runner) is None:
            raise self._refusal_of(shard)
        reply = Reply()
        runner.queue(event, reply)
        if not shard.touched:
            self._touch(shard)
        return reply

    def epoch_of(self, partition: int) -> int:
        """Return the leader epoch of a partition that this broker coordinates; -1 for another."""
        shard = self._shards.get(partition)
        return -1 if shard is None else shard.epoch

    def log_of(self, partition: int) -> PartitionLog:
        """Return the log of a partition that accepts events; raises as `submit`."""
        shard = self._shards.get(partition)
        if shard is None or shard.runner is None or shard.log is None:
            raise self._refusal_of(shard)
        return shard.log

    async def submit_all(self, event: Any) -> list[Any]:
        """Submit an event to every shard on this broker, one after the other; return the replies.

        Raises as `submit` while one is loading.
        """
        if self._closed:
            raise CoordinatorNotAvailableError
        shards = {index: shard for index, shard in self._shards.items() if shard.state is not ShardState.FAILED}
        for shard in shards.values():
            if shard.runner is None:
                raise self._refusal_of(shard)
        return [await self.submit_to(index, event) for index in shards]

    def notify_all(self, key: Hashable, event: Any) -> None:
        """Submit an event to every active shard, by a timer under `key`; there is no reply.

        Like any timer event it is retried until it is committed.
        """
        for shard in self._shards.values():
            if shard.runner is not None:
                shard.runner.set_timers([Timer(key, self._now(), event)])

    def expect_step(self) -> None:
        """Note that the caller will call `step` in this iteration of the loop, so that it need not be scheduled."""
        self._step_due = True

    def step(self) -> None:
        """Process the events submitted since the last step."""
        self._step_due = False
        while self._touched:
            touched, self._touched = self._touched, []
            for shard in touched:
                shard.touched = False
                if shard.runner is not None:
                    shard.runner.step()

    def _refusal_of(self, shard: _Shard[Record, KindMachine] | None) -> Exception:
        """Return the error for an event of a shard without a runner."""
        if shard is None:
            return CoordinatorNotAvailableError() if self._closed else NotCoordinatorError()
        return CoordinatorLoadInProgressError() if shard.state is ShardState.LOADING else NotCoordinatorError()

    def _touch(self, shard: _Shard[Record, KindMachine]) -> None:
        """Schedule a step of a shard's runner; without events the step does nothing."""
        shard.touched = True
        self._touched.append(shard)
        if not self._step_due:
            self._step_due = True
            asyncio.get_running_loop().call_soon(self.step)

    def _append(
        self, shard: _Shard[Record, KindMachine], opened: PartitionLog, records: Sequence[Record]
    ) -> Reply | None:
        """Append a decision's records; return a reply that completes on commit, None if they are committed already."""
        if shard.state is not ShardState.ACTIVE and not self._closed:
            # The shard of a later leader epoch replays, or has replayed, the log: it would miss these records.
            raise NotCoordinatorError
        now, end_offset = self._clock.wall_ms(), opened.log_end_offset
        try:
            offsets = (self._kind.write or self._write)(opened, records, now)
        except (NotLeaderError, OSError) as error:
            raise NotCoordinatorError(str(error)) from error
        except NotEnoughReplicasError as error:
            raise CoordinatorNotAvailableError(str(error)) from error
        except BatchTooLargeError as error:
            raise UnwritableError(str(error)) from error
        except (ProtocolError, OverflowError, ValueError) as error:
            if opened.log_end_offset != end_offset:
                raise  # Records that were appended must not be decided again.
            log.error("Failed to encode records of %s: %s", self._name(shard.index), error)
            raise UnwritableError(str(error)) from error
        committed = None
        if offsets is not None:
            committed = self._commits.committed(opened, offsets[1] + 1, partial(self._touch, shard))
        self._kind.appended(records)
        if self._kind.observer is not None:
            if committed is None:
                self._notify(shard, records)
            else:
                committed.through(lambda _: self._notify(shard, records))
        return committed

    def _write(self, opened: PartitionLog, records: Sequence[Record], now: int) -> tuple[int, int] | None:
        batches = self._kind.codec.encode(records, now, max_batch_bytes=opened.max_batch_bytes)
        return opened.append(batches, now) if batches else None

    def _name(self, index: int) -> str:
        return f"{self._kind.topic}-{index}"


def _nothing() -> None:
    """Do nothing on commit."""


class _Shard(Generic[Record, KindMachine]):
    """One partition that this broker leads."""

    def __init__(self, index: int, epoch: int) -> None:
        self.index = index
        self.epoch = epoch
        self.state = SHARD_LIFE.initial
        self.machine: KindMachine | None = None
        self.loading: asyncio.Future[None]
        # Invariant: None unless the state is ACTIVE.
        self.runner: Runner[Any, Record] | None = None
        # The shard's log, while it has a runner.
        self.log: PartitionLog | None = None
        self.touched = False
        # Whether loading failed because the log was not open.
        self.lacked_log = False

    def step(self, what: ShardStep) -> None:
        self.state = SHARD_LIFE.following(self.state, what)
