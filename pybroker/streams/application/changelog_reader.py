"""Restores the stores of a thread's tasks from their changelogs, and follows those of standby tasks.

Owns the restore consumer of the thread. `step` does a bounded part of the work, so that the thread keeps polling.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.consuming.consumer import Consumer
from pybroker.client.errors import ClientError, NoOffsetError
from pybroker.streams.application.active_task import TaskState, ThreadTask
from pybroker.streams.errors import TaskCorruptedError
from pybroker.streams.runtime.record_queue import RawRecord

log = logging.getLogger("pybroker.streams")

UNCOMMITTED_BYTES = 16 << 20
"""Restored changes of a task that need more memory are committed."""
MAX_RECORDS = 10_000
"""How many records one step restores at most."""


class RestoreProgress(msgspec.Struct, frozen=True):
    """The progress of a store, as the state restore listener receives it."""

    store: str
    partition: TopicPartition
    start_offset: int
    end_offset: int
    restored: int
    """The number of records restored so far."""
    finished: bool = False


class _Changelog(msgspec.Struct):
    """One changelog partition that is read."""

    task: ThreadTask
    store: str
    partition: TopicPartition
    next_offset: int
    start_offset: int = 0
    end_offset: int | None = None
    """The offset at which the store is complete; None for a standby task, which never is."""
    restored: int = 0

    @property
    def is_complete(self) -> bool:
        return self.end_offset is not None and self.next_offset >= self.end_offset


class ChangelogReader:
    """Restores and follows the changelogs of one thread."""

    def __init__(
        self,
        open_consumer: Callable[[], Consumer[bytes, bytes]],
        committed: Callable[[Iterable[TopicPartition]], Any],
        end_offsets: Callable[[Iterable[TopicPartition]], Mapping[TopicPartition, int]],
        listener: Callable[[RestoreProgress], object] | None = None,
    ) -> None:
        """Read nothing yet.

        Args:
            open_consumer: returns the restore consumer.
            committed: returns the group's committed offsets, which limit source topics that serve as changelogs.
            end_offsets: returns high watermarks, also if the consumer reads only committed records.
            listener: receives the progress of stores.
        """
        self._open_consumer = open_consumer
        self._committed = committed
        self._end_offsets = end_offsets
        self._listener = listener
        self._consumer: Consumer[bytes, bytes] | None = None
        self._changelogs: dict[TopicPartition, list[_Changelog]] = {}
        self._waiting: list[ThreadTask] = []
        self._done_at_once: list[ThreadTask] = []
        """Tasks without a changelog, which `step` returns next."""

    @property
    def is_idle(self) -> bool:
        """Whether no task is restored. Standby tasks do not count."""
        return not self._waiting and not any(
            changelog.end_offset is not None for found in self._changelogs.values() for changelog in found
        )

    @property
    def has_work(self) -> bool:
        """Whether there is a changelog to read."""
        return bool(self._waiting or self._changelogs)

    def remaining(self, task: ThreadTask) -> int:
        """Return the number of offsets that a task still restores. Compacted offsets and control records count."""
        return sum(
            max(0, changelog.end_offset - changelog.next_offset)
            for found in self._changelogs.values()
            for changelog in found
            if changelog.task is task and changelog.end_offset is not None
        )

    def register(self, task: ThreadTask) -> None:
        """Restore a task, or follow the changelogs of a standby task."""
        self._waiting.append(task)

    def unregister(self, task: ThreadTask) -> None:
        """Read the changelogs of a task no more."""
        if task in self._waiting:
            self._waiting.remove(task)
        for partition in list(self._changelogs):
            left = [changelog for changelog in self._changelogs[partition] if changelog.task is not task]
            if left:
                self._changelogs[partition] = left
            else:
                del self._changelogs[partition]
        self._assign()

    def step(self, timeout_s: float | None) -> list[ThreadTask]:
        """Restore some records, and return the tasks that are complete now.

        A paused application passes None: only tasks that need no record become complete.

        Raises:
            TaskCorruptedError: the changelog has lost the records after the state of a store.
            ClientError: the brokers cannot be reached.
        """
        if self._waiting:
            self._begin()
        done = self._take_complete()
        if done or not self._changelogs or timeout_s is None:
            return done
        self._read(timeout_s)
        return self._take_complete()

    def close(self) -> None:
        """Close the consumer."""
        self._changelogs.clear()
        self._waiting.clear()
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _begin(self) -> None:
        """Find where the changelogs of new tasks begin and end."""
        tasks, self._waiting = self._waiting, []
        found = [
            _Changelog(task, store, partition, task.task.stores[store].committed_offset or 0)
            for task in tasks
            for store, partition in task.changelogs().items()
        ]
        self._done_at_once = [task for task in tasks if not task.changelogs() and task.state is TaskState.RESTORING]
        for changelog in found:
            self._changelogs.setdefault(changelog.partition, []).append(changelog)
        if not found:
            return
        consumer = self._consumer = self._consumer or self._open_consumer()
        self._assign()
        partitions = [changelog.partition for changelog in found]
        # A committed offset can be visible before the transaction has ended in the changelog. So a task is complete at
        # the high watermark: the consumer arrives there when all transactions before it have ended.
        ends = self._end_offsets(partitions)
        starts = consumer.beginning_offsets(*partitions)
        sources = [changelog.partition for changelog in found if changelog.task.is_source(changelog.partition)]
        committed = self._committed(sources) if sources else {}
        for changelog in found:
            self._set_range(changelog, starts[changelog.partition], ends[changelog.partition], committed)
            consumer.seek(changelog.partition, changelog.next_offset)
            self._report(changelog)

    def _set_range(self, changelog: _Changelog, start: int, end: int, committed: Any) -> None:
        if changelog.next_offset > end or 0 < changelog.next_offset < start:
            raise TaskCorruptedError(
                f"store {changelog.store} of task {changelog.task.task_id} contains {changelog.partition} up to offset "
                f"{changelog.next_offset}, and the topic has the offsets {start} to {end}",
                changelog.task.task_id,
            )
        changelog.start_offset = changelog.next_offset = max(changelog.next_offset, start)
        if changelog.task.is_source(changelog.partition):
            # The task processes what is not committed, so that those records must not be in the store.
            offset = committed.get(changelog.partition)
            end = min(end, 0 if offset is None else offset.offset)
        changelog.end_offset = None if changelog.task.state is TaskState.STANDBY else end

    def _assign(self) -> None:
        if self._consumer is not None:
            self._consumer.assign(list(self._changelogs))

    def _read(self, timeout_s: float) -> None:
        assert self._consumer is not None, "a changelog that is read has a consumer"
        try:
            records = self._consumer.poll(timeout_s, MAX_RECORDS)
        except NoOffsetError as error:
            task = next(iter(self._changelogs.values()))[0].task
            raise TaskCorruptedError(
                f"the changelog of task {task.task_id} was truncated: {error}", task.task_id
            ) from error
        for record in records:
            raw = RawRecord(
                record.topic,
                record.partition,
                record.offset,
                record.timestamp_ms,
                record.key,
                record.value,
                tuple(record.headers),
            )
            for changelog in self._changelogs.get(TopicPartition(record.topic, record.partition), ()):
                if changelog.end_offset is None or raw.offset < changelog.end_offset:
                    changelog.task.restore(changelog.store, raw)
                    changelog.restored += 1
        for partition, changelogs in self._changelogs.items():
            position = self._position(partition)
            for changelog in changelogs:
                if position > changelog.next_offset:
                    changelog.next_offset = position
                    self._report(changelog)
                if changelog.task.uncommitted_bytes > UNCOMMITTED_BYTES:
                    changelog.task.commit_stores()

    def _position(self, partition: TopicPartition) -> int:
        """Return the consumer's position, which passes control records too."""
        assert self._consumer is not None, "a changelog that is read has a consumer"
        try:
            return self._consumer.position(partition)
        except ClientError:
            return 0

    def _take_complete(self) -> list[ThreadTask]:
        open_tasks = {
            id(changelog.task)
            for found in self._changelogs.values()
            for changelog in found
            if not changelog.is_complete
        }
        done = self._done_at_once
        self._done_at_once = []
        for found in list(self._changelogs.values()):
            for changelog in found:
                task = changelog.task
                if id(task) not in open_tasks and task not in done:
                    done.append(task)
        for task in done:
            for changelog in [c for found in self._changelogs.values() for c in found if c.task is task]:
                task.changelog_offsets[changelog.store] = max(changelog.next_offset, changelog.start_offset)
                self._report(changelog, finished=True)
            self.unregister(task)
        return done

    def _report(self, changelog: _Changelog, *, finished: bool = False) -> None:
        if self._listener is not None and changelog.end_offset is not None:
            self._listener(
                RestoreProgress(
                    changelog.store,
                    changelog.partition,
                    changelog.start_offset,
                    changelog.end_offset,
                    changelog.restored,
                    finished,
                )
            )
