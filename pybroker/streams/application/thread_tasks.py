"""The tasks of one stream thread: creation, restoration, processing, commit and close (`TaskManager`).

Owns the tasks. The thread polls the consumer, and passes assignments and records. Nothing here reads the consumer's
records.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping

from pybroker.client.administration.groups import OffsetAndMetadata, Offsets
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.consuming.consumer import Consumer
from pybroker.client.consuming.record_columns import RecordColumns
from pybroker.client.errors import CommitFailedError
from pybroker.client.membership.streams_events import GroupTask, GroupTasks
from pybroker.client.transaction.consumed import Consumed
from pybroker.streams.application.active_task import TaskState, ThreadTask
from pybroker.streams.application.changelog_reader import ChangelogReader
from pybroker.streams.application.collector import ProducerCollector
from pybroker.streams.application.column_tasks import Programs, process_columns, raw_records
from pybroker.streams.application.measured import Measured
from pybroker.streams.application.settings import ApplicationSettings
from pybroker.streams.application.stream_producer import StreamProducer
from pybroker.streams.errors import DirectoryLockedError, StreamsError, TaskMigratedError
from pybroker.streams.processor import PunctuationType
from pybroker.streams.runtime.record_queue import RawRecord
from pybroker.streams.runtime.task import StreamTask
from pybroker.streams.state.directory import StateDirectory
from pybroker.streams.state.store import StateStore
from pybroker.streams.topology.nodes import SourceNode
from pybroker.streams.topology.topology import Topology

log = logging.getLogger("pybroker.streams")

UNCOMMITTED_BYTES = 64 << 20
"""Persistent stores with more uncommitted changes are committed before the interval is over."""


def wall_clock_ms() -> int:
    """Return the time of the machine, in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class ThreadTasks:
    """The tasks of one thread."""

    def __init__(
        self,
        topology: Topology,
        settings: ApplicationSettings,
        consumer: Consumer[bytes, bytes],
        producer: StreamProducer,
        state: tuple[ChangelogReader, StateDirectory | None],
    ) -> None:
        """`state` has the reader of changelogs, and the directory of persistent stores."""
        self._changelogs, self._directory = state
        self._topology = topology
        self._settings = settings
        self._consumer = consumer
        self._producer = producer
        self.global_stores: Mapping[str, StateStore] = {}
        self.programs: Programs = {}
        self.tasks: dict[GroupTask, ThreadTask] = {}
        self._by_partition: dict[TopicPartition, ThreadTask] = {}
        self._deferred: dict[GroupTask, TaskState] = {}
        """Assigned tasks whose directory another thread has not released yet."""
        self._paused: set[TopicPartition] = set()
        self._first: dict[TopicPartition, int] = {}
        """The first positions of partitions without a committed offset, where they are not the earliest ones."""
        self.processed = self.processed_as_columns = self.committed = self.created = self.closed = 0
        self.commit_latency = Measured()
        """Milliseconds from the flush of caches to the commit of stores."""
        self._closed_dropped = 0

    @property
    def dropped_records(self) -> int:
        """The number of records that operators and handlers have skipped."""
        return self._closed_dropped + sum(task.task.dropped_records for task in list(self.tasks.values()))

    @property
    def active(self) -> list[ThreadTask]:
        """The active tasks, restoring or running."""
        return [task for task in list(self.tasks.values()) if task.state is not TaskState.STANDBY]

    @property
    def is_restoring(self) -> bool:
        """Whether an active task is not running yet. Any thread may read this."""
        return TaskState.RESTORING in list(self._deferred.values()) or self.reads_changelogs

    @property
    def reads_changelogs(self) -> bool:
        """Whether an active task is being restored. A task that waits for its directory is not."""
        return any(task.state is TaskState.RESTORING for task in list(self.tasks.values()))

    # Assignment.

    def assign(self, tasks: GroupTasks) -> None:
        """Create the tasks of an assignment that the thread does not have, and close those that it has lost.

        Active tasks are revoked before, by `revoke`.
        """
        self._deferred.clear()
        standby = (tasks.standby | tasks.warmup) - tasks.active
        for group_task in list(self.tasks):
            task = self.tasks[group_task]
            is_standby = task.state is TaskState.STANDBY
            if group_task not in tasks.active | standby or is_standby != (group_task in standby):
                self._close(task, clean=is_standby)
        for group_task in sorted(tasks.active - self.tasks.keys()):
            self._deferred[group_task] = TaskState.RESTORING
            # No task takes the records until it is created, so that they must not be polled.
            self._pause(self._queues(group_task))
        for group_task in sorted(standby - self.tasks.keys()):
            if self._has_changelogs(group_task):
                self._deferred[group_task] = TaskState.STANDBY
        self.create_deferred()

    def create_deferred(self) -> None:
        """Create the assigned tasks that do not exist yet and whose directory is free."""
        for group_task, state in list(self._deferred.items()):
            try:
                self._create(group_task, state)
            except DirectoryLockedError as error:
                log.debug("Task %s waits for its directory: %s", _task_id(group_task), error)
            else:
                del self._deferred[group_task]

    def revoke(self, partitions: Iterable[TopicPartition]) -> None:
        """Commit all tasks, and close those of the partitions."""
        revoked = {id(task): task for partition in partitions if (task := self._by_partition.get(partition))}
        self.commit(self.active)
        for task in revoked.values():
            self._close(task, clean=True)

    def close_dirty(self) -> None:
        """Close all tasks without a commit. The open transaction is aborted."""
        self._deferred.clear()
        for task in list(self.tasks.values()):
            self._close(task, clean=False)
        self._producer.reset()

    def wipe(self, task_id: str) -> None:
        """Delete the state of a task that is closed, so that it is restored from the start of its changelogs."""
        if self._directory is not None and task_id:
            self._directory.wipe(task_id)

    def close(self) -> None:
        """Commit and close all tasks."""
        self.commit(self.active)
        for task in list(self.tasks.values()):
            self._close(task, clean=True)

    def _create(self, group_task: GroupTask, state: TaskState) -> None:
        nodes = self._topology.subtopologies()[int(group_task.subtopology)]
        task_id = _task_id(group_task)
        names = {f"{self._settings.config.application_id}-{name}-changelog" for name in self._topology.stores}
        collector = ProducerCollector(self._producer, (task_id, group_task.partition), names, self._settings.handlers)
        task = StreamTask(self._topology, nodes, self._settings.config, collector, wall_clock_ms, task_id)
        task.handlers = self._settings.handlers
        task.global_stores = self.global_stores
        queues = self._queues(group_task)
        created = ThreadTask(group_task, task, collector, queues, state)
        log.info("Creating task %s as %s", task_id, state.name.lower())
        self._open_stores(task)
        self.tasks[group_task] = created
        self.created += 1
        if state is not TaskState.STANDBY:
            for partition in queues:
                self._by_partition[partition] = created
        self._changelogs.register(created)

    def _queues(self, task: GroupTask) -> dict[TopicPartition, str]:
        """Return the source partitions of a task, with the topic of the queue of each."""
        nodes = self._topology.subtopologies()[int(task.subtopology)]
        topics = [
            f"{self._settings.config.application_id}-{topic}" if topic in self._topology.internal_topics else topic
            for name in nodes
            if isinstance(node := self._topology.nodes[name], SourceNode)
            for topic in node.topics
        ]
        return {TopicPartition(topic, task.partition): topic for topic in topics}

    def _open_stores(self, task: StreamTask) -> None:
        """Lock the directory of a task and open its stores. A failure releases the directory."""
        if self._directory is None or not task.stores:
            task.open_stores()
            return
        task.state_directory = self._directory.lock(task.task_id)
        try:
            task.open_stores()
        except BaseException:
            self._directory.unlock(task.task_id)
            raise

    def _has_changelogs(self, group_task: GroupTask) -> bool:
        nodes = set(self._topology.subtopologies()[int(group_task.subtopology)])
        return any(
            nodes & set(connected.users) and connected.builder.logging for connected in self._topology.stores.values()
        )

    def _close(self, task: ThreadTask, *, clean: bool) -> None:
        log.info("Closing task %s%s", task.task_id, "" if clean else " without a commit")
        self._changelogs.unregister(task)
        del self.tasks[task.group_task]
        for partition in task.partitions:
            if self._by_partition.get(partition) is task:
                del self._by_partition[partition]
        self._paused.difference_update(task.partitions)
        self.closed += 1
        self._closed_dropped += task.task.dropped_records
        try:
            task.close(clean=clean)
        except Exception as error:
            if clean:
                raise
            log.warning("Task %s was closed with an error: %s", task.task_id, error)
        finally:
            if self._directory is not None:
                self._directory.unlock(task.task_id)

    # Restoration and processing.

    def restore(self, timeout_s: float | None) -> None:
        """Restore some records, and begin to process the tasks that are complete. A timeout of None reads no record."""
        complete = self._changelogs.step(timeout_s)
        if not complete:
            return
        committed = self._consumer.committed(*(p for task in complete for p in task.partitions))
        for task in complete:
            self._reset_offsets(task, committed)
            task.run(committed)
            log.info("Task %s is restored and runs", task.task_id)
            self._resume(task.partitions)

    def _reset_offsets(self, task: ThreadTask, committed: Mapping[TopicPartition, OffsetAndMetadata | None]) -> None:
        """Apply the `offset_reset` of sources to their partitions without a committed offset.

        The latest offset is that of now, so that records which are sent to a running application are processed. A task
        that is created again begins where it began before: nothing that it has read is committed.

        Raises:
            StreamsError: the source has `offset_reset="none"`.
        """
        sources = [node for name in task.task.sources if isinstance(node := self._topology.nodes[name], SourceNode)]
        for node in sources:
            reset = node.offset_reset or self._settings.clients.main["auto.offset.reset"]
            partitions = [
                TopicPartition(task.task.decorated(topic), task.group_task.partition) for topic in node.topics
            ]
            new = [partition for partition in partitions if committed.get(partition) is None]
            if not new:
                continue
            if reset == "none":
                raise StreamsError(f"no committed offset of {new[0]}, and the reset of source {node.name} is 'none'")
            if reset == "earliest":
                self._consumer.seek_to_beginning(*new)
                continue
            unread = [partition for partition in new if partition not in self._first]
            if unread and reset == "latest":
                self._first |= self._consumer.end_offsets(*unread)
            elif unread:
                self._first |= {partition: self._consumer.position(partition) for partition in unread}
            for partition in new:
                self._consumer.seek(partition, self._first[partition])

    def add_columns(self, taken: RecordColumns, *, processes: bool) -> None:
        """Process a batch of columns at once. Rows that need it are appended as records, or all without `processes`."""
        partition = TopicPartition(taken.topic, taken.partition)
        task = self._by_partition.get(partition)
        if task is None:
            return
        rows = taken.to_arrow()
        program = self.programs[int(task.group_task.subtopology)]
        if processes and process_columns(task, program, partition, rows):
            task.processed += rows.num_rows
            self.processed += rows.num_rows
            self.processed_as_columns += rows.num_rows
        else:
            self.add(partition, raw_records(partition, rows))

    def add(self, partition: TopicPartition, records: Iterable[RawRecord]) -> None:
        """Append fetched records of one partition. A partition with a full queue is paused."""
        task = self._by_partition.get(partition)
        if task is None:
            return
        size = 0
        for record in records:
            size = task.add(partition, record)
        if size > self._settings.buffered_records and partition not in self._paused:
            self._pause([partition])

    def process(self, most: int) -> int:
        """Process up to `most` records of each running task, and return how many were processed."""
        total = 0
        for task in self.active:
            if task.state is not TaskState.RUNNING:
                continue
            done = 0
            while done < most and task.task.is_processable():
                task.task.process()
                done += 1
                if task.task.commit_requested:
                    break
            if done:
                task.needs_commit = True
                task.processed += done
                total += done
                self._resume(p for p in task.partitions if p in self._paused and self._has_space(task, p))
        self.processed += total
        return total

    def punctuate(self) -> bool:
        """Run the due punctuators of all running tasks, and return whether there was one."""
        ran = False
        for task in self.active:
            if task.state is TaskState.RUNNING:
                stream = task.task.punctuate(PunctuationType.STREAM_TIME)
                if task.task.punctuate(PunctuationType.WALL_CLOCK_TIME) or stream:
                    ran = task.needs_commit = True
        return ran

    def _has_space(self, task: ThreadTask, partition: TopicPartition) -> bool:
        return task.buffered(partition) <= self._settings.buffered_records

    def _pause(self, partitions: Iterable[TopicPartition]) -> None:
        assigned = self._consumer.assignment()
        chosen = [partition for partition in partitions if partition in assigned]
        if chosen:
            self._consumer.pause(*chosen)
            self._paused.update(chosen)

    def _resume(self, partitions: Iterable[TopicPartition]) -> None:
        paused = [partition for partition in partitions if partition in self._paused]
        if not paused:
            return  # The assignment is read in another thread.
        assigned = self._consumer.assignment()
        chosen = [partition for partition in paused if partition in assigned]
        if chosen:
            self._consumer.resume(*chosen)
            self._paused.difference_update(chosen)

    # Commit.

    @property
    def commit_requested(self) -> bool:
        """Whether a processor has requested a commit, or the uncommitted changes need much memory."""
        return any(
            task.task.commit_requested or task.uncommitted_bytes > UNCOMMITTED_BYTES for task in self.tasks.values()
        )

    def commit(self, tasks: Iterable[ThreadTask]) -> int:
        """Commit the records, offsets and stores of the tasks that have changed, and return their number.

        Raises:
            TaskMigratedError: the group or the transaction coordinator refuses this member.
            ClientError: a record was not delivered, or the brokers cannot be reached.
        """
        began = time.monotonic()
        chosen = [task for task in tasks if task.state is TaskState.RUNNING and task.needs_commit]
        for task in chosen:
            task.prepare_commit()
        if not chosen:
            return 0
        consumed = self._consumer.consumed()
        offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        for task in chosen:
            offsets |= task.offsets(consumed.offsets)
        self._commit_offsets(offsets, consumed)
        for task in chosen:
            task.complete_commit(offsets)
        self.commit_latency.record((time.monotonic() - began) * 1000)
        self.committed += len(chosen)
        return len(chosen)

    def _commit_offsets(self, offsets: Offsets, consumed: Consumed) -> None:
        if self._settings.exactly_once:
            self._producer.commit(offsets, consumed.group)
            return
        self._producer.flush()
        try:
            self._consumer.commit(offsets)
        except CommitFailedError as error:
            raise TaskMigratedError(f"the group refuses the offsets of this member: {error}") from error

    def commit_standby_tasks(self) -> None:
        """Make the changes of the stores of standby tasks durable."""
        for task in self.tasks.values():
            if task.state is TaskState.STANDBY:
                task.commit_stores()


def _task_id(task: GroupTask) -> str:
    return f"{task.subtopology}_{task.partition}"
