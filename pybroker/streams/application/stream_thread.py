"""A stream thread: polls, processes and commits, until it is stopped or fails (`StreamThread`).

Owns the consumer, the producer and the tasks of the thread. Its lock is held while tasks change, so that queries of
other threads find them between two records.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.consuming.consumer import Consumer
from pybroker.client.consuming.listener import RebalanceListener
from pybroker.client.consuming.topic_watch import TopicWatch
from pybroker.client.drivers.streams import StreamsDriver
from pybroker.client.errors import ClientError, TransactionError
from pybroker.client.membership.streams import StreamsMember, StreamsRules
from pybroker.client.network.cluster import Cluster
from pybroker.client.settings import ConsumerSettings
from pybroker.protocol.messages.streams_group_heartbeat import EndpointToPartitions
from pybroker.streams.application.active_task import ThreadTask
from pybroker.streams.application.changelog_reader import ChangelogReader, RestoreProgress
from pybroker.streams.application.column_tasks import Programs
from pybroker.streams.application.measured import Measured
from pybroker.streams.application.settings import ApplicationSettings
from pybroker.streams.application.states import UncaughtResponse
from pybroker.streams.application.stream_producer import StreamProducer
from pybroker.streams.application.thread_tasks import ThreadTasks
from pybroker.streams.columns.program import READ_COLUMNS
from pybroker.streams.errors import (
    MissingSourceTopicError,
    StreamsError,
    TaskCorruptedError,
    TaskMigratedError,
    TopologyError,
)
from pybroker.streams.runtime.record_queue import RawRecord
from pybroker.streams.state.directory import StateDirectory
from pybroker.streams.topology.topology import Topology

log = logging.getLogger("pybroker.streams")

STALE_TOPOLOGY, MISSING_SOURCE_TOPICS, INCORRECTLY_PARTITIONED_TOPICS = 0, 1, 2
MISSING_INTERNAL_TOPICS, SHUTDOWN_APPLICATION = 3, 4
PROCESS_AT_ONCE = 100
"""How many records of one task are processed before the next task is."""
PROCESS_S = 0.2
"""How long a thread processes before it polls again."""
CLOSE_TIMEOUT_S = 30.0


class ThreadContext(msgspec.Struct, frozen=True):
    """The part of an application that its threads use."""

    topology: Topology
    settings: ApplicationSettings
    rules: StreamsRules
    count_partitions: Callable[[str], int]
    end_offsets: Callable[[Iterable[TopicPartition]], Mapping[TopicPartition, int]]
    """Returns high watermarks."""
    on_restore: Callable[[RestoreProgress], object]
    decide: Callable[[BaseException], UncaughtResponse]
    """Called in a thread that has failed, while it is still in the group."""
    on_change: Callable[[], object]
    """Called after tasks were assigned, revoked or restored."""
    directory: StateDirectory | None
    """The directory of persistent stores; None if there is none."""
    paused: threading.Event
    """Set while the application is paused (KIP-834)."""
    global_lock: threading.RLock
    """Held while tasks process, where the topology has global stores that another thread changes."""
    programs: Programs
    """The programs of an application that processes batches of columns; empty for all others."""


class StreamThread(RebalanceListener):
    """One thread of an application."""

    def __init__(self, context: ThreadContext, name: str, index: int) -> None:
        self.name = name
        self.lock = threading.RLock()
        """Held while the tasks change."""
        self.failure: BaseException | None = None
        self.response = UncaughtResponse.SHUTDOWN_CLIENT
        """The decision about the failure."""
        self.is_removed = False
        """Whether the application continues without this thread."""
        self.has_ended = False
        """Whether everything of the thread is closed."""
        self.shutdown_requested = False
        """Whether the group requests the shutdown of the application."""
        self._context = context
        self._settings = context.settings
        self.index = index
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._driver: StreamsDriver | None = None
        self._missing_since: float | None = None
        self._rebalance_failure: Exception | None = None
        self._committed_at = 0.0
        self._poll_records = Measured()
        self.is_assigned = False
        """Whether the thread has an assignment, which may be empty."""
        self.endpoints: Sequence[EndpointToPartitions] = ()
        """The partitions of each member with an `application.server`, as the last poll has found them."""
        self.endpoints_changed_at = float("-inf")
        """When `endpoints` was replaced: the thread that has noticed the last change has the newest."""
        self._consumer = self._open_consumer()
        try:
            self._producer = StreamProducer(
                self._settings, f"{name}-producer", self._transactional_id(), context.count_partitions
            )
        except BaseException:
            self._consumer.close(0.0)
            raise
        self._changelogs = ChangelogReader(
            self._open_restore_consumer, self._committed, context.end_offsets, context.on_restore
        )
        state = (self._changelogs, context.directory)
        self.tasks = ThreadTasks(context.topology, self._settings, self._consumer, self._producer, state)
        self.tasks.programs = context.programs
        self._topics = sorted(
            {
                topic
                for subtopology in context.rules.topology.subtopologies
                for topic in (*subtopology.source_topics, *(t.name for t in subtopology.repartition_source_topics))
            }
        )

    # The life of the thread.

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Have the thread commit, close its tasks and leave the group. `join` waits for that."""
        self._stop.set()

    def join(self, timeout_s: float | None) -> bool:
        """Wait for the end of the thread, and return whether it has ended."""
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    @property
    def is_current(self) -> bool:
        """Whether the caller runs in this thread, for example in a listener."""
        return self._thread is threading.current_thread()

    @property
    def is_running(self) -> bool:
        """Whether all assigned tasks are restored."""
        return self.is_assigned and not self.tasks.is_restoring

    def request_application_shutdown(self) -> None:
        """Have the next heartbeats, and that which leaves the group, request the shutdown of all members."""
        if self._driver is not None:
            self._driver.request_shutdown_soon()

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the thread by Kafka's names. Averages and maxima are those since its start."""
        return {
            **self._poll_records.metrics("poll-records"),
            "poll-total": float(self._poll_records.count),
            "process-total": float(self.tasks.processed),
            **self.tasks.commit_latency.metrics("commit-latency"),
            "process-columns-total": float(self.tasks.processed_as_columns),
            "commit-total": float(self.tasks.committed),
            "task-created-total": float(self.tasks.created),
            "task-closed-total": float(self.tasks.closed),
            "dropped-records-total": float(self.tasks.dropped_records),
            "active-tasks": float(len(self.tasks.active)),
            "standby-tasks": float(len(self.tasks.tasks) - len(self.tasks.active)),
        }

    def task_metrics(self) -> dict[str, dict[str, float]]:
        """Return the metrics of each task of the thread, by the id of the task."""
        with self.lock:
            return {task.task_id: self._of_task(task) for task in self.tasks.tasks.values()}

    def _of_task(self, task: ThreadTask) -> dict[str, float]:
        return {
            "process-total": float(task.processed),
            "dropped-records-total": float(task.task.dropped_records),
            "restore-total": float(task.restored),
            "restore-remaining-records-total": float(self._changelogs.remaining(task)),
            "update-total": float(task.updated),
        }

    def store_metrics(self) -> dict[str, dict[str, dict[str, float]]]:
        """Return the metrics of the persistent stores of each task, by the id of the task and the name of the store."""
        with self.lock:
            return {
                task.task_id: {
                    name: store.maps.property_values()
                    for name, store in task.task.stores.items()
                    if store.maps is not None and store.maps.persistent
                }
                for task in self.tasks.tasks.values()
            }

    def _run(self) -> None:
        try:
            self._consumer.subscribe(self._topics, listener=self)
            while not self._stop.is_set():
                self._run_once()
        except BaseException as error:  # noqa: BLE001 - the application decides about every failure of a thread
            self.failure = error
            self.response = self._context.decide(error)
            if self.response is UncaughtResponse.SHUTDOWN_APPLICATION:
                self.request_application_shutdown()
        finally:
            try:
                self._close()
            finally:
                self.has_ended = True
                self._context.on_change()

    def _run_once(self) -> None:
        try:
            self._poll()
            self._work()
        except TaskMigratedError as error:
            log.warning("Thread %s lost its tasks, and joins the group again: %s", self.name, error)
            self._rejoin()
        except TaskCorruptedError as error:
            log.warning("Thread %s restores its tasks again: %s", self.name, error)
            self._revive(error.task_id)
        except TransactionError as error:
            log.warning("Thread %s aborts its transaction, and restores its tasks: %s", self.name, error)
            self._revive()

    def _poll(self) -> None:
        """Poll, which also revokes and assigns tasks, and pass the records to their tasks."""
        # While the thread restores, `_restore` waits for the records of changelogs.
        restores = self.tasks.reads_changelogs and not self._context.paused.is_set()
        timeout_s = 0.0 if restores else self._settings.poll_ms / 1000
        records, columns = [], None
        if self._context.programs:
            columns = self._consumer.take_columns(timeout_s, columns=READ_COLUMNS)
        else:
            records = self._consumer.poll(timeout_s)
        failure, self._rebalance_failure = self._rebalance_failure, None
        if failure is not None:
            raise failure
        self._check_group()
        self._poll_records.record(len(records) if columns is None else len(columns))
        if columns is not None:
            with self.lock:
                self.tasks.add_columns(columns, processes=not self._context.paused.is_set())
        if not records:
            return
        by_partition: dict[TopicPartition, list[RawRecord]] = {}
        last: tuple[str, int] | None = None
        for record in records:
            at = (record.topic, record.partition)
            if at != last:
                last = at
                found = by_partition.setdefault(TopicPartition(*at), [])
            found.append(
                RawRecord(
                    record.topic,
                    record.partition,
                    record.offset,
                    record.timestamp_ms,
                    record.key,
                    record.value,
                    tuple(record.headers),
                )
            )
        with self.lock:
            for partition, of_partition in by_partition.items():
                self.tasks.add(partition, of_partition)

    def _work(self) -> None:
        with self.lock, self._context.global_lock:
            self.tasks.create_deferred()
            if self._changelogs.has_work:
                self._restore()
            if self._context.paused.is_set():
                self._maybe_commit()
                return
            deadline = time.monotonic() + PROCESS_S
            while not self._stop.is_set():
                processed = self.tasks.process(PROCESS_AT_ONCE)
                punctuated = self.tasks.punctuate()
                self._maybe_commit()
                if not processed or punctuated or time.monotonic() > deadline:
                    return

    def _restore(self) -> None:
        was_restoring = self.tasks.reads_changelogs
        if self._context.paused.is_set():
            timeout_s = None
        else:
            # Standby tasks take what has arrived: the thread waits for records of its active tasks in `_poll`.
            timeout_s = self._settings.poll_ms / 1000 if was_restoring else 0.0
        self.tasks.restore(timeout_s)
        if was_restoring and not self.tasks.is_restoring:
            self._context.on_change()

    def _maybe_commit(self) -> None:
        now = time.monotonic()
        if now - self._committed_at >= self._settings.commit_interval_ms / 1000:
            self.tasks.commit(self.tasks.active)
            self.tasks.commit_standby_tasks()
            self._committed_at = time.monotonic()
        elif self.tasks.commit_requested:
            self.tasks.commit(self.tasks.active)

    def _check_group(self) -> None:
        """React to what the coordinator reports about the group, and keep the endpoints of its members.

        Raises:
            MissingSourceTopicError: a source topic has been missing for `task.timeout.ms`.
            TopologyError: topics of a join have different numbers of partitions.
        """
        assert self._driver is not None, "statuses come from the driver"
        if self._driver.endpoints is not self.endpoints:
            self.endpoints = self._driver.endpoints
            self.endpoints_changed_at = time.monotonic()
        membership = self._driver.member.membership
        is_final = membership.is_ready and membership.target == membership.owned and not self._driver.statuses
        if not self.is_assigned and is_final:
            # The assignment is that of the member already, for example none: no rebalance follows. A group with a
            # status, for example missing internal topics, assigns no tasks yet.
            self.is_assigned = True
            self._context.on_change()
        missing = None
        for status in self._driver.statuses:
            if status.status_code == SHUTDOWN_APPLICATION:
                self.shutdown_requested = True
                self._stop.set()
            elif status.status_code == INCORRECTLY_PARTITIONED_TOPICS:
                raise TopologyError(f"{status.status_detail}. Create the topics with equal numbers of partitions")
            elif status.status_code in (MISSING_SOURCE_TOPICS, MISSING_INTERNAL_TOPICS):
                missing = status.status_detail
        if missing is None:
            self._missing_since = None
            return
        now = time.monotonic()
        if self._missing_since is None:
            self._missing_since = now
        waited_ms = round((now - self._missing_since) * 1000)
        if waited_ms >= self._settings.task_timeout_ms:
            raise MissingSourceTopicError(
                f"{missing} for {waited_ms} ms (task.timeout.ms={self._settings.task_timeout_ms}). Create the topics, "
                "then start the application again"
            )

    # The rebalance listener, called inside `poll`. A failure is raised after `poll`, when the consumer has completed
    # the rebalance. Otherwise the consumer would keep revoked partitions and not read the new ones.

    def on_revoked(self, partitions: Sequence[TopicPartition], /) -> None:
        """Commit, and close the tasks of the partitions."""
        with self.lock:
            try:
                self.tasks.revoke(partitions)
            except Exception as error:  # noqa: BLE001 - functions of the program raise anything, and the caller is `poll`
                self._rebalance_failure = error
                self.tasks.close_dirty()
        self._context.on_change()

    def on_assigned(self, partitions: Sequence[TopicPartition], /) -> None:
        """Create the new tasks. They are restored before they run."""
        del partitions
        assert self._driver is not None, "an assignment comes from the driver"
        with self.lock:
            try:
                if self._rebalance_failure is None:
                    self.tasks.assign(self._driver.target())
            except Exception as error:  # noqa: BLE001 - functions of the program raise anything, and the caller is `poll`
                self._rebalance_failure = error
        self.is_assigned = True
        self._context.on_change()

    def on_lost(self, partitions: Sequence[TopicPartition], /) -> None:
        """Close all tasks without a commit: they may run elsewhere."""
        del partitions
        with self.lock:
            self.tasks.close_dirty()
        self.is_assigned = False
        self._context.on_change()

    # Recovery and end.

    def _rejoin(self) -> None:
        with self.lock:
            self.tasks.close_dirty()
        self.is_assigned = False
        self._context.on_change()
        self._consumer.unsubscribe()
        self._consumer.subscribe(self._topics, listener=self)

    def _revive(self, corrupted: str = "") -> None:
        """Create all tasks again from what is committed. The member stays in its group.

        The state of a task that is `corrupted` is deleted.
        """
        assert self._driver is not None, "tasks come from the driver"
        with self.lock:
            self.tasks.close_dirty()
            self.tasks.wipe(corrupted)
            # A task resets its partitions without a committed offset when it is restored.
            for partition, offset in self._consumer.committed(*self._consumer.assignment()).items():
                if offset is not None:
                    self._consumer.seek(partition, offset.offset)
            self.tasks.assign(self._driver.owned_tasks())
        self.is_assigned = True
        self._context.on_change()

    def _close(self) -> None:
        """Close everything. After a failure nothing is committed."""
        with self.lock:
            try:
                if self.failure is None:
                    self.tasks.close()
            except Exception as error:  # noqa: BLE001 - functions of the program raise anything, and the thread must end
                log.warning("Thread %s closes its tasks without a last commit: %s", self.name, error)
            with contextlib.suppress(ClientError, StreamsError):
                self.tasks.close_dirty()
        self.is_assigned = False
        for what, close in (
            ("restore consumer", self._changelogs.close),
            ("producer", lambda: self._producer.close(CLOSE_TIMEOUT_S if self.failure is None else 0.0)),
            ("consumer", self._consumer.close),
        ):
            try:
                close()
            except (ClientError, StreamsError) as error:
                log.warning("Thread %s could not close its %s: %s", self.name, what, error)

    # Clients.

    def _open_consumer(self) -> Consumer[bytes, bytes]:
        properties = {**self._settings.clients.main, "client.id": f"{self.name}-consumer"}
        return Consumer(self._settings.bootstrap_servers, properties, make_driver=self._make_driver)

    def _open_restore_consumer(self) -> Consumer[bytes, bytes]:
        properties = {**self._settings.clients.restore, "client.id": f"{self.name}-restore-consumer"}
        return Consumer(self._settings.bootstrap_servers, properties)

    def _make_driver(
        self, cluster: Cluster, settings: ConsumerSettings, topics: TopicWatch, notify: Callable[[], None]
    ) -> StreamsDriver:
        rules = msgspec.structs.replace(
            self._context.rules,
            rack=settings.client_rack or None,
            max_poll_interval_s=settings.max_poll_interval_ms / 1000,
        )
        self._driver = StreamsDriver(cluster, settings, topics, notify, StreamsMember(rules, str(uuid.uuid4())))
        return self._driver

    def _transactional_id(self) -> str | None:
        if not self._settings.exactly_once:
            return None
        return f"{self._settings.config.application_id}-{self._context.rules.process_id}-{self.index}"

    def _committed(self, partitions: Iterable[TopicPartition]) -> Any:
        return self._consumer.committed(*partitions)
