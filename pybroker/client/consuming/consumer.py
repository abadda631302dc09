"""Consumer for blocking code: every call of `AsyncConsumer`, on an event loop in a thread of its own.

That thread sends heartbeats while the program processes its records. The rebalance listener and commit callbacks run
in the program's thread, inside the call that triggers them. They may call the consumer.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import re
import threading
import time
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError
from contextvars import ContextVar, copy_context
from typing import Any, Generic, Self, TypeVar

from pybroker.client import native
from pybroker.client.administration.groups import OffsetAndMetadata
from pybroker.client.administration.topics import ListedOffset, TopicDescription, TopicPartition
from pybroker.client.closing import Closing
from pybroker.client.consuming.async_consumer import CLOSE_TIMEOUT_S, AsyncConsumer
from pybroker.client.consuming.columns import MAX_ROWS
from pybroker.client.consuming.commits import Callback
from pybroker.client.consuming.deserializers import Deserializer, Key, Value
from pybroker.client.consuming.fetcher import Record
from pybroker.client.consuming.listener import RebalanceListener
from pybroker.client.consuming.record_columns import COLUMNS, RecordColumns
from pybroker.client.drivers.driver import Identity, MakeDriver
from pybroker.client.errors import ClosedError
from pybroker.client.metrics import MetricValue
from pybroker.client.one_caller import FREE_CALLS, ThreadCalls, one_caller
from pybroker.client.transaction.consumed import Consumed

Result = TypeVar("Result")

_Jobs = queue.SimpleQueue[Callable[[], None] | None]
_jobs: ContextVar[_Jobs] = ContextVar("jobs of a consumer's call")
"""The queue of functions that the thread of the current call must run."""
_END_S = 5.0
"""Time in seconds that cancelled calls may take to end."""


@one_caller(free=(*FREE_CALLS, "take_arrivals"))
class Consumer(Closing, Generic[Key, Value]):
    """`with Consumer("127.0.0.1:9092", {"group.id": "g"}) as c: c.subscribe(["orders"]); c.poll()`.

    One thread at a time: a call while another thread is inside raises ConcurrentAccessError. Any thread may close it.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        properties: Mapping[str, Any] | None = None,
        *,
        key_deserializer: Deserializer[Key] | None = None,
        value_deserializer: Deserializer[Value] | None = None,
        make_driver: MakeDriver | None = None,
    ) -> None:
        """`make_driver` is that of `AsyncConsumer`."""
        self._async: AsyncConsumer[Key, Value] = AsyncConsumer(
            bootstrap_servers,
            properties,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
            invoke=self._invoke,
            make_driver=make_driver,
        )
        self._calls = ThreadCalls("Consumer")
        self._begin_call, self._end_call = self._calls.lock.acquire, self._calls.lock.release
        self._next_ahead = self._async.next_of_ahead
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=_serve, args=(self._loop,), name="pybroker-consumer", daemon=True)
        self._thread.start()
        self._ends = self._closed = False

    def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """As `AsyncConsumer.close`: another thread's call that is under way raises ClosedError, and iteration ends."""
        deadline = time.monotonic() + timeout_s
        calls, self._calls.closes = self._calls, True
        with contextlib.suppress(RuntimeError):  # another thread has closed the loop
            self._loop.call_soon_threadsafe(self._async.interrupt)
        # A thread that does not leave in time is in a listener, and finds the consumer closed.
        owns = calls.lock.acquire(timeout=min(timeout_s, threading.TIMEOUT_MAX))
        try:
            # A second thread returns here. A listener that `close` calls may call `close` again.
            if not self._ends:
                self._ends = True
                self._end(max(0.0, deadline - time.monotonic()))
        finally:
            if owns:
                calls.lock.release()

    def _end(self, timeout_s: float) -> None:
        try:
            self._call(self._async.close(timeout_s))
        finally:
            self._closed = True
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def subscribe(
        self,
        topics: Collection[str] = (),
        *,
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """As `AsyncConsumer.subscribe`; the listener's methods are plain functions."""
        self._run(lambda: self._async.subscribe(topics, pattern=pattern, listener=listener))

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """As `AsyncConsumer.assign`."""
        self._run(lambda: self._async.assign(partitions))

    def unsubscribe(self) -> None:
        """As `AsyncConsumer.unsubscribe`."""
        self._call(self._async.unsubscribe())

    def assignment(self) -> frozenset[TopicPartition]:
        """As `AsyncConsumer.assignment`."""
        return self._run(self._async.assignment)

    def subscription(self) -> frozenset[str]:
        """As `AsyncConsumer.subscription`."""
        return self._run(self._async.subscription)

    def membership(self) -> Identity:
        """As `AsyncConsumer.membership`."""
        return self._run(self._async.membership)

    def poll(self, timeout_s: float = 1.0, max_records: int | None = None) -> list[Record[Key, Value]]:
        """As `AsyncConsumer.poll`; records that have arrived are returned without a switch to the loop's thread."""
        if records := self._async.poll_here(max_records):
            return records
        return self._call(self._async.poll(timeout_s, max_records))

    def format(
        self, layout: native.RecordFormat, timeout_s: float = 1.0, *, max_records: int, max_bytes: int
    ) -> native.FormattedRecords | None:
        """As `AsyncConsumer.format`; records that have arrived are formatted without a switch to the loop's thread."""
        made = self._async.format_here(layout, max_records=max_records, max_bytes=max_bytes)
        if made is not None:
            return made
        return self._call(self._async.format(layout, timeout_s, max_records=max_records, max_bytes=max_bytes))

    def take_columns(
        self, timeout_s: float = 1.0, *, columns: Sequence[str] = COLUMNS, max_rows: int = MAX_ROWS
    ) -> RecordColumns | None:
        """As `AsyncConsumer.take_columns`."""
        return self._call(self._async.take_columns(timeout_s, columns=columns, max_rows=max_rows))

    def __iter__(self) -> Self:
        if self._closed:
            raise ClosedError("the consumer is closed")
        return self

    def __next__(self) -> Record[Key, Value]:
        """As `AsyncConsumer.__anext__`."""
        # Inlined from `one_caller`, to save a call for each record.
        if not self._begin_call(False):
            if self._calls.closes:
                raise StopIteration
            raise self._calls.refuse("__next__")
        try:
            return self._next_ahead() or self._await_next()
        finally:
            self._end_call()

    def _await_next(self) -> Record[Key, Value]:
        try:
            return self._async.next_ahead() or self._call(self._async.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None
        except ClosedError:
            if self._calls.closes:
                raise StopIteration from None
            raise

    def metrics(self) -> dict[str, float]:
        """As `AsyncConsumer.metrics`."""
        return self._async.metrics()

    def partition_metrics(self) -> dict[TopicPartition, dict[str, float]]:
        """As `AsyncConsumer.partition_metrics`."""
        return self._async.partition_metrics()

    def metric_values(self) -> list[MetricValue]:
        """As `AsyncConsumer.metric_values`."""
        return self._async.metric_values()

    def count(self, timeout_s: float = 1.0, *, stamped: bool = False) -> tuple[int, int]:
        """As `AsyncConsumer.count`."""
        return self._call(self._async.count(timeout_s, stamped=stamped))

    def take_arrivals(self) -> tuple[native.Tally, native.LatencyHistogram]:
        """Return the stamped records counted since the last call, and their latencies from stamp to arrival."""
        return self._async.native.take_arrivals()

    def position(self, partition: TopicPartition) -> int:
        """As `AsyncConsumer.position`."""
        return self._call(self._async.position(partition))

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """As `AsyncConsumer.seek`."""
        self._run(lambda: self._async.seek(partition, offset))

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """As `AsyncConsumer.seek_to_beginning`."""
        self._run(lambda: self._async.seek_to_beginning(*partitions))

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """As `AsyncConsumer.seek_to_end`."""
        self._run(lambda: self._async.seek_to_end(*partitions))

    def pause(self, *partitions: TopicPartition) -> None:
        """As `AsyncConsumer.pause`."""
        self._run(lambda: self._async.pause(*partitions))

    def resume(self, *partitions: TopicPartition) -> None:
        """As `AsyncConsumer.resume`."""
        self._run(lambda: self._async.resume(*partitions))

    def paused(self) -> frozenset[TopicPartition]:
        """As `AsyncConsumer.paused`."""
        return self._run(self._async.paused)

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None) -> None:
        """As `AsyncConsumer.commit`."""
        self._call(self._async.commit(offsets))

    def commit_later(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None,
        callback: Callback | None = None,
    ) -> None:
        """As `AsyncConsumer.commit_later`."""
        self._run(lambda: self._async.commit_later(offsets, callback))

    def consumed(self) -> Consumed:
        """As `AsyncConsumer.consumed`."""
        return self._run(self._async.consumed)

    def committed(self, *partitions: TopicPartition) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """As `AsyncConsumer.committed`."""
        return self._call(self._async.committed(*partitions))

    def offsets_for_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, ListedOffset | None]:
        """As `AsyncConsumer.offsets_for_times`."""
        return self._call(self._async.offsets_for_times(times))

    def beginning_offsets(self, *partitions: TopicPartition) -> dict[TopicPartition, int]:
        """As `AsyncConsumer.beginning_offsets`."""
        return self._call(self._async.beginning_offsets(*partitions))

    def end_offsets(self, *partitions: TopicPartition) -> dict[TopicPartition, int]:
        """As `AsyncConsumer.end_offsets`."""
        return self._call(self._async.end_offsets(*partitions))

    def partitions_for(self, topic: str) -> TopicDescription:
        """As `AsyncConsumer.partitions_for`."""
        return self._call(self._async.partitions_for(topic))

    def _run(self, function: Callable[[], Result]) -> Result:
        """Run a plain call in the loop's thread."""

        async def run() -> Result:
            return function()

        return self._call(run())

    def _call(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in the loop's thread. Meanwhile this thread runs functions that the coroutine passes back."""
        if self._closed:
            work.close()
            raise ClosedError("the consumer is closed")
        jobs: _Jobs = queue.SimpleQueue()
        # Invariant: the thread that pops the work decides whether it begins: the loop's, or this one at an interrupt.
        unbegun = [work]
        tasks: list[asyncio.Task[Any] | None] = []

        async def run() -> Result:
            tasks.append(asyncio.current_task())
            _jobs.set(jobs)
            return await unbegun.pop()

        running, future = run(), None
        try:
            self._async.make_due()
            future = asyncio.run_coroutine_threadsafe(running, self._loop)
            future.add_done_callback(lambda _: jobs.put(None))
            while (job := jobs.get()) is not None:
                job()
            return future.result()
        except CancelledError:
            if self._closed:  # the listener has closed the consumer
                raise ClosedError("the consumer is closed") from None
            raise
        finally:
            if future is None:
                self._take_back(running, unbegun, tasks)
            else:
                future.cancel()

    def _take_back(
        self,
        running: Coroutine[Any, Any, Any],
        unbegun: list[Coroutine[Any, Any, Any]],
        tasks: list[asyncio.Task[Any] | None],
    ) -> None:
        """Cancel a call that was interrupted while it was passed to the loop, so that no caller has its future."""
        try:
            unbegun.pop().close()
        except IndexError:
            for task in tasks:
                if task is not None:
                    self._loop.call_soon_threadsafe(task.cancel)
        else:
            with contextlib.suppress(ValueError):  # the loop's thread has just closed the coroutine
                running.close()

    async def _invoke(self, function: Callable[..., object], *arguments: object) -> None:
        """Have the thread of the current call run a function of the program."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        failures: list[Exception] = []
        inside = copy_context()  # calls of this consumer from the function are part of the current call

        def job() -> None:
            try:
                inside.run(function, *arguments)
            except Exception as error:  # noqa: BLE001 (it is raised again by the call that is under way)
                failures.append(error)
            with contextlib.suppress(RuntimeError):  # the function, or another thread, has closed the consumer
                loop.call_soon_threadsafe(done.set)

        _jobs.get().put(job)
        await done.wait()
        if failures:
            raise failures[0]


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop until it is stopped, and cancel the tasks of interrupted calls."""
    loop.run_forever()
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left, timeout=_END_S))
