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
from pybroker.streams.application.column_tasks import column_programs
from pybroker.streams.application.global_thread import GlobalThread
from pybroker.streams.application.group_topology import group_topology
from pybroker.streams.application.instance_queries import InstanceQueries
from pybroker.streams.application.listeners import (
    Listeners,
    RestoreListener,
    StateListener,
    UncaughtHandler,
    explained,
)
from pybroker.streams.application.settings import parse_settings
from pybroker.streams.application.states import ENDED, STARTED, TRANSITIONS, State, UncaughtResponse
from pybroker.streams.application.stream_thread import StreamThread, ThreadContext
from pybroker.streams.application.stream_threads import StreamThreads
from pybroker.streams.application.thread_tasks import wall_clock_ms
from pybroker.streams.config import StreamsConfig
from pybroker.streams.errors import StreamsError
from pybroker.streams.state.directory import StateDirectory, default_state_dir
from pybroker.streams.state.rocks import check_installed
from pybroker.streams.topology.nodes import ProcessorNode, node_serdes
from pybroker.streams.topology.topology import Topology

log = logging.getLogger("pybroker.streams")


class KafkaStreams(InstanceQueries):
    """One instance of an application. It can be started once."""

    def __init__(self, topology: Topology, settings: Mapping[str, Any]) -> None:
        """Check topology and settings. Nothing is connected before `start`.

        Args:
            topology: what `StreamsBuilder.build` returns, or a topology of the Processor API.
            settings: Kafka's keys; `application.id` and `bootstrap.servers` are required.

        Raises:
            StreamsError: a setting is unknown, missing or invalid, a node cannot run, or a node has no serde.
            SettingError: a client refuses a setting.
        """
        super().__init__(topology, parse_settings(settings), StreamThreads(self._make_thread))
        for node in topology.nodes.values():
            if not isinstance(node, ProcessorNode):
                node_serdes(node, self._settings.config.default_serdes)
        self._programs = column_programs(topology, self._settings)
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
        self._directory: StateDirectory | None = None
        self._paused = threading.Event()
        self._starter: threading.Thread | None = None
        self._watcher: threading.Thread | None = None
        self._listeners = Listeners(self._rules.group_id)
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
        """Fill the global stores, then start the threads. Returns once the threads run, or after a `close` meanwhile.

        Raises:
            StreamsError: the application was started before, or the brokers have no streams groups.
            ClientError: the brokers cannot be reached, or reject the clients.
        """
        with self._lock:
            self._check_created("an application")
            self._starter = threading.current_thread()
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
            if self._threads.is_stopping:
                self._global.stop()
            self._global.start()
        for _ in range(self._settings.threads):
            self._threads.add()

    def _open_directory(self) -> StateDirectory:
        return StateDirectory(self._settings.config.state_dir or default_state_dir(), self._rules.group_id)

    def cleanup(self) -> None:
        """Delete the state of this application on this machine (`cleanUp`). The next start restores it.

        Raises:
            StreamsError: the application runs, or the directory cannot be deleted.
        """
        if self._state not in ENDED | {State.CREATED}:
            raise StreamsError(f"the state cannot be deleted in state {self._state.name}: close the application first")
        directory = self._open_directory()
        try:
            directory.clean()
        finally:
            directory.close()

    def _global_failed(self, error: BaseException) -> None:
        """Stop the application: its global stores do not follow their topics any more."""
        self.failure = self.failure or error
        self._stop()

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
        self._stop()
        if self._watcher is None and self._global is not None and not self._threads.all():
            self._global.stop()  # `start` reads its topics, and no thread uses its stores yet.
        if not self._is_inside():
            deadline = None if timeout_s is None else time.monotonic() + timeout_s
            self._wait_for(lambda: self._state in ENDED, timeout_s)
            watcher = self._watcher
            if watcher is not None and watcher.is_alive():  # It reports the last state.
                watcher.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
        return self._state in ENDED

    def _is_inside(self) -> bool:
        """Return whether the end of the application waits for the current thread."""
        current, watcher = threading.current_thread(), self._watcher
        return (
            current is (self._starter if watcher is None else watcher)
            or (self._global is not None and self._global.is_current)
            or any(thread.is_current for thread in self._threads.all())
        )

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the application has stopped, and return whether it has.

        Raises:
            BaseException: the error of the thread that has stopped the application.
        """
        self._wait_for(lambda: self._state in ENDED, timeout_s)
        if self._state is State.ERROR and self.failure is not None:
            raise self.failure
        return self._state is State.NOT_RUNNING

    def wait_until_running(self, timeout_s: float = 60.0) -> None:
        """Wait until all tasks of this instance are restored and run.

        Raises:
            StreamsError: the application has stopped, or the timeout is over.
        """
        self._wait_for(lambda: self._state in ENDED | {State.RUNNING}, timeout_s)
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

    @property
    def is_paused(self) -> bool:
        """Whether processing is paused."""
        return self._paused.is_set()

    def pause(self) -> None:
        """Stop processing, punctuators, restoration and standby tasks until `resume` (KIP-834).

        Threads stay in the group, poll and commit. An application can be paused before it starts. Other instances of
        the application continue.
        """
        self._paused.set()

    def resume(self) -> None:
        """Continue after `pause`."""
        self._paused.clear()

    @property
    def _can_change_threads(self) -> bool:
        # Before the watcher exists, `start` may still open what threads use.
        return self._state in STARTED and self._watcher is not None

    def add_stream_thread(self) -> str | None:
        """Start one more thread, and return its name (KIP-663). It has the lowest free number.

        Returns:
            The name, or None if the application is neither RUNNING nor REBALANCING, or `start` has not returned.

        Raises:
            ClientError: the clients of the thread cannot be opened.
        """
        thread = self._threads.add() if self._can_change_threads else None
        if thread is None:
            log.warning("No thread is added: application %s is %s", self._rules.group_id, self._state.name)
            return None
        self._thread_changed()
        return thread.name

    def remove_stream_thread(self, timeout_s: float | None = None) -> str | None:
        """Stop one thread, which commits and leaves the group, and return its name (KIP-663).

        The application continues, also without any thread. A thread of the application that calls this is removed only
        if it is the last one, and then the call does not wait.

        Args:
            timeout_s: how long to wait for the end of the thread; None waits until it has ended.

        Returns:
            The name, or None if there is no thread, the application is neither RUNNING nor REBALANCING, or `start` has
            not returned.

        Raises:
            StreamsError: the timeout is over. The thread still stops.
        """
        thread = self._threads.begin_removal() if self._can_change_threads else None
        if thread is None:
            log.warning("No thread is removed: application %s is %s", self._rules.group_id, self._state.name)
            return None
        log.info("Removing thread %s", thread.name)
        if not thread.is_current and not thread.join(timeout_s):
            raise StreamsError(f"thread {thread.name} did not stop in {timeout_s} s: it stops after its current work")
        return thread.name

    def _make_thread(self, number: int) -> StreamThread:
        context = ThreadContext(
            topology=self._topology,
            settings=self._settings,
            rules=self._rules,
            count_partitions=self._count_partitions,
            end_offsets=self._end_offsets,
            on_restore=self._listeners.report_restored,
            decide=lambda error: self._listeners.decide(explained(error)),
            on_change=self._thread_changed,
            directory=self._directory,
            paused=self._paused,
            global_lock=self._global_lock if self._global is not None else threading.RLock(),
            programs=self._programs,
        )
        thread = StreamThread(context, f"{self._name}-StreamThread-{number}", number)
        if self._global is not None:
            thread.tasks.global_stores = self._global.stores
        return thread

    def _stop(self) -> None:
        """Stop all threads for good. The watcher ends when the last one has ended."""
        self._threads.stop()
        with self._changed:
            self._changed.notify_all()

    def _watch(self) -> None:
        """React to threads that fail, until all threads have ended."""
        cleaned_at = time.monotonic()
        while not self._threads.is_stopping or self._threads.all():
            if (time.monotonic() - cleaned_at) * 1000 >= self._settings.cleanup_delay_ms:
                cleaned_at = time.monotonic()
                self._remove_obsolete()
            with self._changed:
                timeout_s = max(0.0, cleaned_at + self._settings.cleanup_delay_ms / 1000 - time.monotonic())
                self._changed.wait_for(self._threads.has_ended, timeout_s)
                ended = self._threads.take_ended()
            for thread in ended:
                self._handle_end(thread)
        self._stop_threads()
        if self.failure is not None and self._state is not State.PENDING_SHUTDOWN:
            self._end(State.PENDING_ERROR, State.ERROR)
        else:
            self._end(State.PENDING_SHUTDOWN, State.NOT_RUNNING)

    def _handle_end(self, thread: StreamThread) -> None:
        error = thread.failure
        if error is None:
            if thread.shutdown_requested:
                log.info("Closing the application: a member of group %s requested it", self._rules.group_id)
            if thread.is_removed and not thread.shutdown_requested:
                self._thread_changed()
            else:
                self._threads.stop()
            return
        error, response = explained(error), thread.response
        log.error("Thread %s failed: %s", thread.name, response.name, exc_info=error)
        if response is UncaughtResponse.REPLACE_THREAD and self._state in STARTED:
            try:
                self._threads.add()
            except (ClientError, StreamsError) as failure:
                log.error("Thread %s could not be replaced: %s", thread.name, failure)
                error = failure
            else:
                return
        self.failure = self.failure or error
        if response is UncaughtResponse.SHUTDOWN_APPLICATION:
            for other in self._threads.all():
                other.request_application_shutdown()
        self._threads.stop()

    def _remove_obsolete(self) -> None:
        """Delete the state of tasks that have moved to other instances."""
        if self._directory is None:
            return
        try:
            removed = self._directory.remove_obsolete(wall_clock_ms(), self._settings.cleanup_delay_ms)
        except (OSError, StreamsError) as error:
            log.warning("Obsolete state was not deleted: %s", error)
        else:
            if removed:
                log.info("Deleted the state of tasks %s, which have moved", ", ".join(removed))

    def _stop_threads(self) -> None:
        self._threads.stop()
        self._threads.join()
        if self._global is not None:
            self._global.stop()
            self._global.join(None)
        if self._admin is not None:
            self._admin.close()
        if self._directory is not None:
            self._directory.close()

    def _thread_changed(self) -> None:
        """Set the state that follows from the states of the threads."""
        # Two threads that change at once must not overwrite the newer state by the older one.
        with self._lock:
            threads = [thread for thread in self._threads.all() if not thread.is_removed]
            runs = all(thread.is_running for thread in threads)
            before = self._move(State.RUNNING if runs else State.REBALANCING) if threads else None
            after = self._state
            self._changed.notify_all()
        if before is not None:
            self._listeners.report_state(after, before)

    def _set_state(self, state: State) -> None:
        """Change the state if the change is allowed. The listener is called without the lock."""
        with self._lock:
            before = self._move(state)
        if before is not None:
            self._listeners.report_state(state, before)

    def _move(self, state: State) -> State | None:
        """Change the state, and return the state before, or None if the change is not allowed."""
        before = self._state
        if state is before or state not in TRANSITIONS[before]:
            return None
        self._state = state
        self._changed.notify_all()
        return before

    def _end(self, pending: State, final: State) -> None:
        self._set_state(pending)
        self._set_state(final)


def persistent_stores(topology: Topology, config: StreamsConfig) -> list[str]:
    """Return the names of the local stores that are persistent in an application."""
    default = config.persistent_stores
    stores = topology.stores.items()
    return [name for name, connected in stores if connected.builder.with_default_persistence(default).persistent]
