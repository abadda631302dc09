"""A task of a stream thread: the running topology, its partitions, its changelogs and what must be committed."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from pybroker.client.administration.groups import OffsetAndMetadata, Offsets
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.membership.streams_events import GroupTask
from pybroker.streams.application.collector import ProducerCollector
from pybroker.streams.records import Headers
from pybroker.streams.runtime import commit_metadata
from pybroker.streams.runtime.commit_metadata import CommitMetadata
from pybroker.streams.runtime.record_queue import RawRecord
from pybroker.streams.runtime.task import StreamTask


class TaskState(Enum):
    """The state of a task."""

    RESTORING = auto()
    """Its stores read their changelogs. Its partitions are paused."""
    RUNNING = auto()
    STANDBY = auto()
    """Its stores follow their changelogs, and it processes nothing."""


class ThreadTask:
    """One task of a thread."""

    def __init__(
        self,
        group_task: GroupTask,
        task: StreamTask,
        collector: ProducerCollector,
        partitions: Mapping[TopicPartition, str],
        state: TaskState,
    ) -> None:
        """`partitions` has the queue of each source partition."""
        self.group_task = group_task
        self.task = task
        self.collector = collector
        self.partitions = dict(partitions)
        self.state = state
        self.needs_commit = False
        self.processed = self.restored = self.updated = 0
        """The numbers of records processed, restored, and taken from changelogs as a standby task."""
        self.changelog_offsets: dict[str, int] = {}
        """The offset after the last changelog record that each store contains, by store."""

    @property
    def task_id(self) -> str:
        """The id: subtopology and partition."""
        return self.task.task_id

    def changelogs(self) -> dict[str, TopicPartition]:
        """Return the changelog partition of each store that has one."""
        found = {}
        topology = self.task.topology
        for name in self.task.stores:
            if name in topology.store_source_topics or topology.stores[name].builder.logging:
                found[name] = TopicPartition(self.task.changelog_topic(name), self.group_task.partition)
        return found

    def is_source(self, changelog: TopicPartition) -> bool:
        """Return whether a changelog is a source partition of the task."""
        return changelog in self.partitions

    def restore(self, store: str, record: RawRecord) -> None:
        """Apply a record of a changelog to a store."""
        if self.state is TaskState.STANDBY:
            self.updated += 1
        else:
            self.restored += 1
        if record.key is not None:
            headers: Headers = record.headers
            self.task.stores[store].restore(record.key, record.value, record.timestamp, headers)
        self.changelog_offsets[store] = record.offset + 1

    def run(self, committed: Mapping[TopicPartition, OffsetAndMetadata | None]) -> None:
        """Begin to process: take over the times and numbers that were committed, and initialise the processors."""
        for partition, queue in self.partitions.items():
            offset = committed.get(partition)
            if offset is not None:
                self.task.continue_from(queue, commit_metadata.decode(offset.metadata))
        self.task.init_processors()
        self.state = TaskState.RUNNING

    def add(self, partition: TopicPartition, record: RawRecord) -> int:
        """Append a fetched record, and return how many records its queue has."""
        queue = self.partitions[partition]
        self.task.add_record(queue, record)
        return len(self.task.group.queues[queue])

    def buffered(self, partition: TopicPartition) -> int:
        """Return the number of records in the queue of a partition."""
        return len(self.task.group.queues[self.partitions[partition]])

    def prepare_commit(self) -> None:
        """Write the caches, so that every record is with the producer."""
        self.task.flush_caches()
        self.collector.raise_failure()

    def offsets(self, positions: Offsets) -> Offsets:
        """Return the next offset of each source partition, with its metadata.

        Args:
            positions: the consumer's positions: the offsets after all records in the queues.
        """
        found = {}
        numbers = self.task.stored_numbers()
        for partition, name in self.partitions.items():
            queue = self.task.group.queues[name]
            position = positions.get(partition)
            if queue.head is None and position is None:
                continue
            metadata = commit_metadata.encode(CommitMetadata(queue.partition_time, numbers))
            if queue.head is not None:
                found[partition] = OffsetAndMetadata(queue.head.offset, metadata)
            elif position is not None:
                found[partition] = OffsetAndMetadata(position.offset, metadata, position.leader_epoch)
        return found

    def complete_commit(self, committed: Offsets) -> None:
        """Commit the stores together with the ends of their changelogs. All records are acknowledged.

        `committed` are the offsets of source partitions. A store with a source topic as changelog contains the records
        before the committed offset.
        """
        ends = self.collector.take_changelog_offsets()
        for store, changelog in self.changelogs().items():
            if changelog.topic in ends:
                self.changelog_offsets[store] = ends[changelog.topic]
            elif self.is_source(changelog) and changelog in committed:
                self.changelog_offsets[store] = committed[changelog].offset
        self.commit_stores()
        self.needs_commit = False
        self.task.commit_requested = False

    def commit_stores(self) -> None:
        """Make the changes of persistent stores durable."""
        self.task.commit_stores(self.changelog_offsets)

    @property
    def uncommitted_bytes(self) -> int:
        """The memory of changes that persistent stores have not committed."""
        return self.task.uncommitted_bytes

    def close(self, *, clean: bool) -> None:
        """Close the stores, and the processors if they run. Without `clean` nothing is written or sent."""
        if not clean:
            self.collector.discard()
        try:
            if clean and self.state is not TaskState.RUNNING:
                self.commit_stores()  # The next owner of the directory continues there.
            if self.state is TaskState.RUNNING:
                self.task.close_processors()
        finally:
            self.task.close_stores()
