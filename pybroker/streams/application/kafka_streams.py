"""KafkaStreams: runs a topology in this process, against Kafka or pybroker, with any number of instances.

    with KafkaStreams(topology, {"application.id": "counts", "bootstrap.servers": "127.0.0.1:9092"}) as app:
        app.start()
        app.wait()

Instances with the same `application.id` form a streams group (KIP-1071), which divides the tasks among their threads.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import msgspec

from pybroker.client.administration.admin import Admin
from pybroker.client.errors import ClientError
from pybroker.client.membership.streams import StreamsRules
from pybroker.streams.application.global_thread import GlobalThread
from pybroker.streams.application.group_topology import group_topology
from pybroker.streams.application.listeners import (
    Listeners,
    RestoreListener,
    StateListener,
    UncaughtHandler,
    explained,
)
from pybroker.streams.application.metadata import (
    NOT_AVAILABLE,
    KeyQueryMetadata,
    StateLocations,
    StreamsMetadata,
    partition_of_key,
)
from pybroker.streams.application.queries import QueryableStore
from pybroker.streams.application.settings import parse_settings
from pybroker.streams.application.states import STARTED, TRANSITIONS, State, UncaughtResponse
from pybroker.streams.application.stream_thread import StreamThread, ThreadContext
from pybroker.streams.application.thread_tasks import wall_clock_ms
from pybroker.streams.config import StreamsConfig
from pybroker.streams.errors import InvalidStateStoreError, StreamsError
from pybroker.streams.serdes import Serde
from pybroker.streams.state.directory import StateDirectory, default_state_dir
from pybroker.streams.state.rocks import check_installed
from pybroker.streams.topology.nodes import Partitioner
from pybroker.streams.topology.topology import Topology

log = logging.getLogger("pybroker.streams")


class KafkaStreams:
    """One instance of an application. It can be started once."""

    def __init__(self, topology: Topology, settings: Mapping[str, Any]) -> None:
        """Check topology and settings. Nothing is connected before `start`.

        Args:
            topology: what `StreamsBuilder.build` returns, or a topology of the Processor API.
            settings: Kafka's keys; `application.id` and `bootstrap.servers` are required.

        Raises:
            StreamsError: a setting is unknown, missing or invalid, or a node cannot run.
            SettingError: a client refuses a setting.
        """
        self._settings = parse_settings(settings)
        self._topology = topology
        # A topology is checked here, and the process id is that of the state directory, which `start` opens.
        self._rules = StreamsRules(
            group_id=self._settings.config.application_id,
            topology=group_topology(topology, self._settings),
            process_id=str(uuid.uuid4()),
            endpoint=self._settings.endpoint,
            max_poll_interval_s=300.0,
        )
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._state = State.CREATED
        self._threads: list[StreamThread] = []
        self._global_lock = threading.RLock()
        self._global: GlobalThread | None = None
        self._directory: StateDirectory | None = None
        self._admin: Admin | None = None
        self._admin_lock = threading.Lock()
        self._watcher: threading.Thread | None = None
        self._listeners = Listeners(self._rules.group_id)
        self._locations = StateLocations(topology, self._rules.group_id, self._settings.endpoint)
        self._partitions: dict[str, int] = {}
        """The number of partitions of topics that a key was located in. Streams need these numbers to stay."""
        self._started_threads = 0
        self.failure: BaseException | None = None
        """The error that has moved the application to `ERROR`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Listeners: they can be set before `start` only.

    def set_state_listener(self, listener: StateListener) -> None:
        """Have `listener(new, old)` called after every change of the state.

        Raises:
            StreamsError: the application is started.
        """
        self._check_created("the state listener")
        self._listeners.state = listener

    def set_uncaught_exception_handler(self, handler: UncaughtHandler) -> None:
        """Have `handler(error)` decide what happens after a thread has failed.

        Raises:
            StreamsError: the application is started.
        """
        self._check_created("the uncaught exception handler")
        self._listeners.uncaught = handler

    def set_restore_listener(self, listener: RestoreListener) -> None:
        """Have `listener(progress)` called while stores are restored.

        Raises:
            StreamsError: the application is started.
        """
        self._check_created("the restore listener")
        self._listeners.restore = listener

    def _check_created(self, what: str) -> None:
        if self._state is not State.CREATED:
            raise StreamsError(f"{what} can be set in state CREATED only, and the state is {self._state.name}")

    # Life cycle.

    @property
    def state(self) -> State:
        """The state of the application."""
        return self._state

    def start(self) -> None:
        """Fill the global stores, then start the threads. Returns once the threads run.

        Raises:
            StreamsError: the application was started before, or the brokers have no streams groups.
            ClientError: the brokers cannot be reached, or reject the clients.
        """
        with self._lock:
            self._check_created("an application")
            self._state = State.REBALANCING
        self._listeners.report_state(State.REBALANCING, State.CREATED)
        try:
            self._open()
        except BaseException as error:
            self.failure = error
            self._stop_threads()
            self._end(State.PENDING_ERROR, State.ERROR)
            raise
        self._watcher = threading.Thread(target=self._watch, name=f"{self._name}-watcher", daemon=True)
        self._watcher.start()

    @property
    def _name(self) -> str:
        return self._settings.client_id or f"{self._rules.group_id}-{self._rules.process_id}"

    def _open(self) -> None:
        persistent = persistent_stores(self._topology, self._settings.config)
        if persistent:
            check_installed(persistent)
            self._directory = self._open_directory()
            self._rules = msgspec.structs.replace(self._rules, process_id=str(self._directory.process_id))
        self._admin = Admin(self._settings.bootstrap_servers, self._settings.clients.admin)
        if self._topology.global_stores:
            self._global = GlobalThread(
                self._topology, self._settings, f"{self._name}-GlobalStreamThread", self._global_lock
            )
            self._global.on_failure = self._global_failed
            self._global.start()
        for _ in range(self._settings.threads):
            self._add_thread()

    def _open_directory(self) -> StateDirectory:
        return StateDirectory(self._settings.config.state_dir or default_state_dir(), self._rules.group_id)

    def cleanup(self) -> None:
        """Delete the state of this application on this machine (`cleanUp`). The next start restores it.

        Raises:
            StreamsError: the application runs, or the directory cannot be deleted.
        """
        if self._state not in (State.CREATED, State.NOT_RUNNING, State.ERROR):
            raise StreamsError(f"the state cannot be deleted in state {self._state.name}: close the application first")
        directory = self._open_directory()
        try:
            directory.clean()
        finally:
            directory.close()

    def _global_failed(self, error: BaseException) -> None:
        """Stop the application: its global stores do not follow their topics any more."""
        self.failure = self.failure or error
        for thread in list(self._threads):
            thread.stop()

    def _add_thread(self) -> None:
        self._started_threads += 1
        index = self._started_threads
        context = ThreadContext(
            topology=self._topology,
            settings=self._settings,
            rules=self._rules,
            count_partitions=self._count_partitions,
            on_restore=self._listeners.report_restored,
            on_change=self._thread_changed,
            directory=self._directory,
            global_lock=self._global_lock if self._global is not None else threading.RLock(),
        )
        thread = StreamThread(context, f"{self._name}-StreamThread-{index}", index)
        if self._global is not None:
            thread.tasks.global_stores = self._global.stores
        self._threads.append(thread)
        thread.start()

    def close(self, timeout_s: float | None = None) -> bool:
        """Commit, leave the group and stop. Returns whether everything has stopped before the timeout.

        Without a timeout the call waits until everything has stopped. Any thread may call this. In a thread of the
        application, for example in a listener, the call does not wait.
        """
        if self._state is State.CREATED:
            self._end(State.PENDING_SHUTDOWN, State.NOT_RUNNING)
            return True
        if self._state in STARTED:
            self._set_state(State.PENDING_SHUTDOWN)
        for thread in list(self._threads):
            thread.stop()
        watcher = self._watcher
        is_inside = watcher is threading.current_thread() or any(thread.is_current for thread in list(self._threads))
        if watcher is not None and not is_inside:
            watcher.join(timeout_s)
        return self._state in (State.NOT_RUNNING, State.ERROR)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the application has stopped, and return whether it has.

        Raises:
            BaseException: the error of the thread that has stopped the application.
        """
        self._wait_for(lambda: self._state in (State.NOT_RUNNING, State.ERROR), timeout_s)
        if self._state is State.ERROR and self.failure is not None:
            raise self.failure
        return self._state is State.NOT_RUNNING

    def wait_until_running(self, timeout_s: float = 60.0) -> None:
        """Wait until all tasks of this instance are restored and run.

        Raises:
            StreamsError: the application has stopped, or the timeout is over.
        """
        done = (State.RUNNING, State.NOT_RUNNING, State.ERROR)
        self._wait_for(lambda: self._state in done, timeout_s)
        if self._state is not State.RUNNING:
            reason = "" if self.failure is None else f": {self.failure}"
            raise StreamsError(f"the application is {self._state.name} after {timeout_s} s, expected RUNNING{reason}")

    def _wait_for(self, condition: Callable[[], bool], timeout_s: float | None) -> None:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        with self._changed:
            while not condition():
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return
                self._changed.wait(left)

    # Threads.

    def _watch(self) -> None:
        """React to threads that fail, until all threads have ended."""
        cleaned_at = time.monotonic()
        while True:
            if (time.monotonic() - cleaned_at) * 1000 >= self._settings.cleanup_delay_ms:
                cleaned_at = time.monotonic()
                self._remove_obsolete()
            with self._changed:
                timeout_s = max(0.0, cleaned_at + self._settings.cleanup_delay_ms / 1000 - time.monotonic())
                self._changed.wait_for(lambda: any(thread.has_ended for thread in self._threads), timeout_s)
                ended = [thread for thread in self._threads if thread.has_ended]
            for thread in ended:
                self._handle_end(thread)
            if not self._threads:
                break
        self._stop_threads()
        if self.failure is not None and self._state is not State.PENDING_SHUTDOWN:
            self._end(State.PENDING_ERROR, State.ERROR)
        else:
            self._end(State.PENDING_SHUTDOWN, State.NOT_RUNNING)

    def _handle_end(self, thread: StreamThread) -> None:
        self._threads.remove(thread)
        error = thread.failure
        if error is None:
            if thread.shutdown_requested:
                log.info("Closing the application: a member of group %s requested it", self._rules.group_id)
            for other in self._threads:
                other.stop()
            return
        error = explained(error)
        response = self._listeners.decide(error)
        log.error("Thread %s failed: %s", thread.name, response.name, exc_info=error)
        if response is UncaughtResponse.REPLACE_THREAD and self._state in STARTED:
            try:
                self._add_thread()
            except (ClientError, StreamsError) as failure:
                log.error("Thread %s could not be replaced: %s", thread.name, failure)
                error = failure
            else:
                return
        self.failure = self.failure or error
        for other in self._threads:
            if response is UncaughtResponse.SHUTDOWN_APPLICATION:
                other.request_application_shutdown()
            other.stop()

    def _remove_obsolete(self) -> None:
        """Delete the state of tasks that have moved to other instances."""
        if self._directory is None:
            return
        try:
            removed = self._directory.remove_obsolete(wall_clock_ms(), self._settings.cleanup_delay_ms)
        except StreamsError as error:
            log.warning("Obsolete state was not deleted: %s", error)
        else:
            if removed:
                log.info("Deleted the state of tasks %s, which have moved", ", ".join(removed))

    def _stop_threads(self) -> None:
        for thread in self._threads:
            thread.stop()
        for thread in self._threads:
            thread.join(None)
        self._threads.clear()
        if self._global is not None:
            self._global.stop()
            self._global.join(None)
        if self._admin is not None:
            self._admin.close()
        if self._directory is not None:
            self._directory.close()

    def _thread_changed(self) -> None:
        """Set the state that follows from the states of the threads."""
        threads = list(self._threads)
        runs = bool(threads) and all(thread.is_running for thread in threads)
        if self._state in STARTED:
            self._set_state(State.RUNNING if runs else State.REBALANCING)
        with self._changed:
            self._changed.notify_all()

    def _set_state(self, state: State) -> None:
        """Change the state if the change is allowed. The listener is called without the lock."""
        with self._lock:
            before = self._state
            if state is before or state not in TRANSITIONS[before]:
                return
            self._state = state
            self._changed.notify_all()
        self._listeners.report_state(state, before)

    def _end(self, pending: State, final: State) -> None:
        self._set_state(pending)
        self._set_state(final)

    def _count_partitions(self, topic: str) -> int:
        assert self._admin is not None, "the admin is open before the threads"
        with self._admin_lock:
            return len(self._admin.describe_topics([topic])[0].partitions)

    # Queries.

    def store(self, name: str, *, timestamped: bool = False) -> QueryableStore:
        """Return a state store for queries: the local partitions of it, or a global store.

        Args:
            name: the store.
            timestamped: whether values of timestamped stores are returned as `ValueAndTimestamp`.

        Raises:
            InvalidStateStoreError: the topology has no store of this name, or the application does not run.
        """
        self._check_store(name)

        def located() -> list[tuple[threading.RLock, Any]]:
            if self._state not in STARTED:
                raise InvalidStateStoreError(f"store {name!r} cannot be read: the application is {self._state.name}")
            if self._global is not None and name in self._global.stores:
                return [(self._global_lock, self._global.stores[name])]
            return [
                (thread.lock, task.task.stores[name])
                for thread in list(self._threads)
                for task in list(thread.tasks.tasks.values())
                if name in task.task.stores
            ]

        return QueryableStore(name, located, timestamped=timestamped)

    def _check_store(self, name: str) -> None:
        known = sorted([*self._topology.stores, *self._topology.global_stores])
        if name not in known:
            raise InvalidStateStoreError(f"unknown state store {name!r}: expected one of {', '.join(known) or 'none'}")

    def metadata_for_all_streams_clients(self) -> list[StreamsMetadata]:
        """Return all instances of the application that have an `application.server`, in the order of their hosts.

        The result is a view of one moment: tasks move when instances start and stop.

        Raises:
            StreamsError: the application does not run.
        """
        if self._state not in STARTED:
            raise StreamsError(f"instances cannot be listed in state {self._state.name}: expected RUNNING, REBALANCING")
        newest = max(list(self._threads), key=lambda thread: thread.endpoints_changed_at, default=None)
        return self._locations.clients(() if newest is None else newest.endpoints)

    def streams_metadata_for_store(self, store: str) -> list[StreamsMetadata]:
        """Return the instances that have a part of a store, in active or standby tasks. A global store is at all.

        Raises:
            InvalidStateStoreError: the topology has no store of this name.
            StreamsError: the application does not run.
        """
        self._check_store(store)
        return self._locations.clients_of(store, self.metadata_for_all_streams_clients())

    def query_metadata_for_key(
        self, store: str, key: Any, serde: Serde[Any] | None = None, *, partitioner: Partitioner | None = None
    ) -> KeyQueryMetadata:
        """Return the instances that have the state of a key, whether the key exists or not.

        Args:
            store: the store.
            key: the key. Of a window store, the key without its window.
            serde: the serde of keys of the source topic; `default.key.serde` if it is None.
            partitioner: the partitioner of the source topic, if it is not that of Kafka.

        Returns:
            The instances, or `NOT_AVAILABLE` before the group coordinator has reported one. A global store has the
            partition -1. The active host is `UNAVAILABLE` while no instance with an `application.server` has the task.

        Raises:
            InvalidStateStoreError: the topology has no store of this name.
            StreamsError: the application does not run, or the partition of the key cannot be computed.
            ClientError: the number of partitions cannot be fetched.
        """
        clients = self.streams_metadata_for_store(store)
        if not clients:
            return NOT_AVAILABLE
        if self._locations.is_global(store):
            return self._locations.of_global_store(clients)
        topics = sorted(self._locations.source_topics(store))
        counts = {topic: self._cached_partitions(topic) for topic in topics}
        partition = partition_of_key(key, counts, serde or self._settings.config.default_serdes.key, partitioner)
        return self._locations.of_partition(store, partition, clients)

    def _cached_partitions(self, topic: str) -> int:
        found = self._partitions.get(topic)
        if found is None:
            found = self._partitions[topic] = self._count_partitions(topic)
        return found

    def metrics(self) -> dict[str, dict[str, float]]:
        """Return the metrics of each thread, by the name of the thread."""
        return {thread.name: thread.metrics() for thread in list(self._threads)}


def persistent_stores(topology: Topology, config: StreamsConfig) -> list[str]:
    """Return the names of the local stores that are persistent in an application."""
    default = config.persistent_stores
    stores = topology.stores.items()
    return [name for name, connected in stores if connected.builder.with_default_persistence(default).persistent]
