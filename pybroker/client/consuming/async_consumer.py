"""Consumers over asyncio: records of subscribed or assigned partitions, group membership, offsets.

Owns the subscription state. The native fetcher delivers records, a driver keeps the membership. The assignment
changes inside `poll` only. One caller at a time. `pybroker.client.consuming.consumer` is the same for blocking code.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Generic, Self

from pybroker.client import native
from pybroker.client.administration.async_admin import AsyncAdmin
from pybroker.client.administration.groups import OffsetAndMetadata
from pybroker.client.administration.topics import EARLIEST, LATEST, TopicPartition
from pybroker.client.assignors import Assignor, make_assignors
from pybroker.client.closing import AsyncClosing
from pybroker.client.consuming.column_reading import ColumnReading
from pybroker.client.consuming.commits import Commits
from pybroker.client.consuming.committing import Committing
from pybroker.client.consuming.deserializers import Deserializer, Deserializers, Key, Value
from pybroker.client.consuming.fetcher import Record, make_native
from pybroker.client.consuming.formatting import Formatting
from pybroker.client.consuming.listener import Invoke, RebalanceListener, invoke_directly
from pybroker.client.consuming.offset_queries import OffsetQueries
from pybroker.client.consuming.seeking import Seeking
from pybroker.client.consuming.subscription_state import SubscriptionState
from pybroker.client.consuming.topic_watch import TopicWatch
from pybroker.client.consuming.truncation import check_positions
from pybroker.client.drivers.classic import ClassicDriver
from pybroker.client.drivers.driver import Identity, MakeDriver, MembershipDriver
from pybroker.client.drivers.modern import ModernDriver
from pybroker.client.errors import (
    ClientError,
    ClosedError,
    LogTruncationError,
    NoOffsetError,
    SettingError,
    UnreachableError,
)
from pybroker.client.membership.rebalance_step import RebalanceStep
from pybroker.client.metrics import GroupSensors, MeasuredConsumer
from pybroker.client.network.cluster import Cluster
from pybroker.client.one_caller import FREE_CALLS, TaskCalls, guarded, one_caller, running_loop
from pybroker.client.settings import ConsumerSettings

ITERATION_S = 1.0
"""Interval at which iteration checks whether the consumer was closed."""
CLOSE_TIMEOUT_S = 30.0
"""Kafka's default timeout of `close`."""
_log = logging.getLogger("pybroker.client")
_STRATEGY = "partition.assignment.strategy"
_DEFAULT_STRATEGY: str = ConsumerSettings.partition_assignment_strategy.default


@one_caller(free=(*FREE_CALLS, "make_due", "poll_here", "format_here", "next_ahead", "interrupt"))
class AsyncConsumer(
    Committing, Seeking, Formatting, ColumnReading, OffsetQueries, AsyncClosing, MeasuredConsumer, Generic[Key, Value]
):
    """`async with AsyncConsumer("127.0.0.1:9092", {"group.id": "g"}) as c: c.subscribe(["orders"]); await c.poll()`."""

    def __init__(
        self,
        bootstrap_servers: str,
        properties: Mapping[str, Any] | None = None,
        *,
        key_deserializer: Deserializer[Key] | None = None,
        value_deserializer: Deserializer[Value] | None = None,
        invoke: Invoke | None = None,
        make_driver: MakeDriver | None = None,
    ) -> None:
        """`invoke` is that of `Consumer`: it runs the rebalance listener in the program's thread.

        `make_driver` replaces the membership driver of `group.protocol`: a streams thread has a driver of its own.
        """
        self.settings = ConsumerSettings.of_client(bootstrap_servers, properties)
        self._assignors: list[Assignor] = make_assignors((properties or {}).get(_STRATEGY) or _DEFAULT_STRATEGY)
        self.native: native.Fetcher = make_native(self.settings)
        """The engine, for load generators."""
        self._cluster = Cluster(self.settings)
        self._admin = AsyncAdmin.over(self._cluster)
        self._topics = TopicWatch(self._cluster, self.settings, self._topics_changed, self._responses)
        self._sensors = GroupSensors(self.settings)
        self._commits = Commits(self._cluster, self.settings, self._notify, self._sensors)
        self._driver: MembershipDriver | None = None
        self._given_driver = make_driver
        self._invoke = invoke or invoke_directly
        self._calls = TaskCalls("AsyncConsumer" if invoke is None else "Consumer", is_exclusive=invoke is None)
        self._listener = RebalanceListener()
        self._state = SubscriptionState(self.native, self._notify, Deserializers(key_deserializer, value_deserializer))
        self.next_of_ahead = self._state.next_ahead
        """A record that iteration has ready, for `Consumer`; None where `next_ahead` must be called."""
        self._failure: Exception | None = None
        self._news = asyncio.Event()
        """Set when records or other events have arrived."""
        self._due = True
        """Whether the event loop's thread has work to do before records are returned."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._commit_at = 0.0
        self._alive_at = 0.0
        """Time at which `poll_here` next reports to the driver that the program polls."""
        self._closed = self._closes = False
        self._ended = asyncio.Event()
        """`close` has returned."""

    # --------------------------------------------------------------------------------------------- what to read

    def subscribe(
        self,
        topics: Collection[str] = (),
        *,
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Subscribe to these topics, or to those that match a pattern, from the next `poll` on.

        A compiled pattern is searched for by the client in the names of all topics. A pattern given as text must
        match the whole name: the broker matches it with `group.protocol=consumer` (RE2 syntax), else the client.
        Raises SettingError without a `group.id`, and ClientError where no event loop is running.
        """
        self._open()
        self._check_loop()
        if self.settings.group_id is None:
            raise SettingError("subscribe needs a group: set group.id")
        if bool(topics) == (pattern is not None) or isinstance(topics, str):
            raise ClientError("subscribe takes either a list of topics or a pattern")
        if self._state and self._driver is None:
            raise ClientError("partitions were assigned with assign: call unsubscribe first")
        self._listener = listener or RebalanceListener()
        regex = pattern if isinstance(pattern, str) and self.settings.group_protocol == "consumer" else None
        compiled = re.compile(rf"(?:{pattern})\Z") if isinstance(pattern, str) and regex is None else pattern
        self._topics.want(topics, compiled if isinstance(compiled, re.Pattern) else None, regex)
        self._topics.begin()
        if self._driver is None:
            self._driver = self._commits.driver = self._make_driver()
            self._driver.sensors = self._sensors
        self._resubscribe("the subscription has changed")

    def _make_driver(self) -> MembershipDriver:
        if self._given_driver is not None:
            return self._given_driver(self._cluster, self.settings, self._topics, self._notify)
        if self.settings.group_protocol == "consumer":
            return ModernDriver(self._cluster, self.settings, self._topics, self._notify)
        return ClassicDriver(self._cluster, self.settings, self._topics, self._notify, self._assignors)

    def _resubscribe(self, reason: str) -> None:
        assert self._driver is not None
        subscribed = self._topics.subscribed()
        keeps = frozenset(p for p in self._state.all() if p.topic in subscribed or self._topics.regex is not None)
        if subscribed or self._topics.regex is not None:
            self._driver.subscribe(keeps, reason)

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Read these partitions without group membership, from committed offsets, or as `auto.offset.reset`."""
        self._open()
        if self._driver is not None:
            raise ClientError("topics were subscribed with subscribe: call unsubscribe first")
        self._state.drop(self._state.all().difference(partitions))
        self._state.add(partitions)
        self._topics.want(assigned=partitions)

    async def unsubscribe(self) -> None:
        """Unassign all partitions, and leave the group."""
        await self._give_up(commits=self.settings.commits_itself, reason="the consumer unsubscribed from all topics")

    def assignment(self) -> frozenset[TopicPartition]:
        """Return the assigned partitions."""
        return self._state.all()

    def subscription(self) -> frozenset[str]:
        """Return the subscribed topics, as far as they are known."""
        return frozenset() if self._driver is None else self._topics.subscribed()

    def membership(self) -> Identity:
        """Return member id, generation (or epoch) and instance id; `("", -1, None)` outside of a group."""
        return ("", -1, None) if self._driver is None else self._driver.identity()

    # ----------------------------------------------------------------------------------------------------- reading

    async def poll(self, timeout_s: float = 1.0, max_records: int | None = None) -> list[Record[Key, Value]]:
        """Return the next records, at most `max_records` (default: `max.poll.records`); none after the timeout.

        Raises the error of a broker's response or of a received batch, and DeserializationError for a record that a
        deserializer rejects. The position stays at that record, so the next `poll` raises again until `seek`.
        """
        most = self.settings.max_poll_records if max_records is None else max_records
        return await self._until(timeout_s, lambda: self._state.take(most)) or []

    def poll_here(self, max_records: int | None = None) -> list[Record[Key, Value]]:
        """As `poll`, for records that have arrived; returns none while the loop's thread has work to do.

        For a caller in another thread than the event loop's, which makes no other call at the same time.
        """
        if not self._is_free():
            return []
        self._report_alive()
        return self._state.take(self.settings.max_poll_records if max_records is None else max_records)

    def _is_free(self) -> bool:
        """Whether records can be returned without work of the loop's thread."""
        if self._loop is None or self._due or self._calls:
            return False
        return not (self.settings.commits_itself and self._loop.time() >= self._commit_at)

    def _report_alive(self) -> None:
        """Report to the driver that the program polls, from another thread than the loop's."""
        loop = self._loop
        if loop is not None and self._driver is not None and loop.time() >= self._alive_at:
            # Often enough for max.poll.interval.ms. Each report wakes the loop's thread.
            self._alive_at = loop.time() + self.settings.max_poll_interval_ms / 10_000
            loop.call_soon_threadsafe(self._driver.poll)

    def __aiter__(self) -> Self:
        self._open()
        return self

    async def __anext__(self) -> Record[Key, Value]:
        """Return the next record, and advance the position; stops when the consumer is closed.

        Raises as `poll`, and ClientError without a subscription or assignment.
        """
        try:
            while (record := self._state.next_ahead()) is None:
                await self._read_ahead()
        except ClosedError:
            if self._calls.closes:
                raise StopAsyncIteration from None
            raise
        return record

    @guarded
    async def _read_ahead(self) -> None:
        if self._driver is None and not self._state:
            self._open()
            raise ClientError("nothing to iterate over: subscribe to topics, or assign partitions")
        await self._until(ITERATION_S, lambda: self._state.take_ahead(self.settings.max_poll_records))

    def next_ahead(self) -> Record[Key, Value] | None:
        """Return a record that has arrived, for `Consumer`'s iteration; None when `__anext__` must be awaited.

        For the same callers as `poll_here`.
        """
        record = None if self._closed else self._state.next_ahead()
        if record is None and self._is_free():
            self._report_alive()
            self._state.take_ahead(self.settings.max_poll_records)
            record = self._state.next_ahead()
        return record

    def make_due(self) -> None:
        """Have the next records returned by `poll`, after the work that is due."""
        self._due = True

    async def count(self, timeout_s: float = 1.0, *, stamped: bool = False) -> tuple[int, int]:
        """As `poll`, for load generators: count all that has arrived, as (records, bytes of keys and values).

        With `stamped`, `native.take_arrivals` returns the latencies.
        """
        return await self._until(timeout_s, lambda: self._state.count(stamped)) or (0, 0)

    async def _until(self, timeout_s: float, take: Callable[[], Any]) -> Any:
        """Do the work that is due until something can be taken; None after the timeout."""
        self._begin()
        clock = asyncio.get_running_loop().time
        deadline = clock() + timeout_s
        if self._driver is not None:
            self._driver.poll()
        while True:
            self._news.clear()
            self._due = False
            await self._advance()
            self._open()
            if taken := take():
                return taken
            left = deadline - clock()
            if left <= 0:
                return None
            if self.settings.commits_itself:
                left = min(left, max(0.0, self._commit_at - clock()))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._news.wait()

    # ------------------------------------------------------------------------------------------------- what is due

    async def _advance(self) -> None:
        for callback, offsets, error in self._commits.take_done():
            await self._invoke(callback, offsets, error)
        self._raise_failure()
        while self._driver is not None and (step := self._driver.rebalance_step()) is not None:
            await self._rebalance(self._driver, step)
        await self._find_positions()
        if self.settings.commits_itself and self._clock() >= self._commit_at:
            self._commit_at = self._clock() + self.settings.auto_commit_interval_ms / 1000
            self._commits.commit_later(self._state.positions(), None)

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if self._driver is not None and self._driver.failure is not None:
            failure, self._driver.failure = self._driver.failure, None
        if failure is not None:
            raise failure

    async def _rebalance(self, driver: MembershipDriver, step: RebalanceStep) -> None:
        try:
            if step.lost:
                self._state.drop(step.lost)
                await self._call_listener(self._listener.on_lost, step.lost)
            if step.revoked:
                if self.settings.commits_itself:
                    await self._commit_quietly()
                await self._call_listener(self._listener.on_revoked, step.revoked)
                self._state.drop(step.revoked)
            if step.assigned is not None:
                self._sensors.begin_rebalance()
                self._state.add(step.assigned)
                await self._call_listener(self._listener.on_assigned, step.assigned)
                self._sensors.end_rebalance()
        finally:
            if driver is self._driver:  # a listener may unsubscribe, or close the consumer
                driver.step_done(step)

    async def _call_listener(self, what: Callable[..., object], partitions: Collection[TopicPartition]) -> None:
        await self._invoke(what, sorted(partitions, key=lambda p: (p.topic, p.partition)))

    async def _commit_quietly(self) -> None:
        """Commit before a revocation. After a failure, the new owners read the uncommitted records again."""
        with contextlib.suppress(ClientError):
            await self._commits.commit(self._state.positions(), self.settings.request_timeout_ms / 1000)

    async def _find_positions(self) -> None:
        """Set the positions of new partitions: their committed offsets, else as `auto.offset.reset` defines."""
        new = self._state.unbegun()
        if not new:
            return
        offsets, unknown = self._state.unchecked(), set[TopicPartition]()
        requested = [partition for partition in new if partition not in offsets]
        if self.settings.group_id is not None and requested:
            committed, unknown = await self._commits.committed(requested, as_member=True)
            offsets |= committed
        decision = await check_positions(self._cluster, offsets, resets=self.settings.auto_offset_reset != "none")
        resets = [p for p in requested if p not in offsets and p not in unknown] + decision.reset
        starts = {p: OffsetAndMetadata(offset) for p, offset in (await self._reset(resets)).items()}
        self._state.begin(decision.begin | starts)
        if unknown or decision.later:
            asyncio.get_running_loop().call_later(self.settings.retry_backoff_ms / 1000, self._notify)
        if decision.truncated:
            raise LogTruncationError(decision.truncated)

    async def _reset(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        kind = self.settings.auto_offset_reset
        if kind in ("earliest", "latest") or not partitions:
            return dict.fromkeys(partitions, EARLIEST if kind == "earliest" else LATEST)
        back_ms = self.settings.auto_offset_reset_ms
        if back_ms is None:
            names = ", ".join(f"{p.topic}-{p.partition}" for p in partitions)
            raise NoOffsetError(f"no committed offset for {names}, and auto.offset.reset=none")
        found = await self.offsets_for_times(dict.fromkeys(partitions, round(time.time() * 1000) - back_ms))
        return {p: LATEST if listed is None else listed.offset for p, listed in found.items()}

    # --------------------------------------------------------------------------------------------------- positions

    async def position(self, partition: TopicPartition) -> int:
        """Return the offset of the next record that `poll` returns; queries the brokers where it is unknown.

        Raises ClientError for a partition that is not assigned, and UnreachableError after default.api.timeout.ms.
        """
        self._begin()
        longest_ms = self.settings.default_api_timeout_ms
        try:
            async with asyncio.timeout(longest_ms / 1000) as scope:
                while True:
                    self._news.clear()
                    await self._find_positions()
                    if (at := self._state.position(partition)) is not None:
                        return at
                    await self._news.wait()
        except TimeoutError:
            if not scope.expired():
                raise
            name = f"{partition.topic}-{partition.partition}"
            raise UnreachableError(
                f"the position of {name} is not known after {longest_ms} ms (default.api.timeout.ms)"
            ) from None

    # ------------------------------------------------------------------------------------------------ begin and end

    async def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """Commit (with auto-commit), revoke all partitions, leave the group and close the connections.

        Concurrent calls of other tasks raise ClosedError, and iteration ends. After the timeout the remaining steps
        are skipped: records may be read again, and the group keeps this member until its session expires.
        """
        if self._closes:
            if not self._calls.is_inside():
                await self._ended.wait()
            return
        self._closes = True
        try:
            self._check_loop()
        except ClientError:
            self._closed = True
            self._ended.set()
            self.native.close()
            raise
        try:
            if not await self._calls.close(self._leave, timeout_s):
                _log.warning(
                    "Consumer %s closed without its last commit or LeaveGroup: no response within %.1f s",
                    self.settings.client_id,
                    timeout_s,
                )
        finally:
            self._closed = True
            await self._topics.stop()
            if self._loop is not None:
                self._loop.remove_reader(self.native.arrived_descriptor())
            await asyncio.to_thread(self.native.close)
            await self._cluster.close()
            self._ended.set()

    def interrupt(self) -> None:
        """End all calls with ClosedError from now on, except `close` and the calls of its listeners."""
        self._calls.interrupt()

    async def _leave(self) -> None:
        await self._give_up(commits=self.settings.commits_itself, reason="the consumer is being closed")
        await self._commits.complete(self.settings.request_timeout_ms / 1000)
        for callback, offsets, error in self._commits.take_done():
            await self._invoke(callback, offsets, error)

    async def _give_up(self, *, commits: bool, reason: str) -> None:
        driver, self._driver = self._driver, None
        is_late = False
        try:
            if commits and self._state:
                await self._commit_quietly()
            if driver is not None and self._state:
                lost = driver.identity()[1] == -1
                call = self._listener.on_lost if lost else self._listener.on_revoked
                await self._call_listener(call, self._state.all())
        except asyncio.CancelledError:
            is_late = True
            raise
        finally:
            self._state.drop(self._state.all())
            self._topics.want()
            self._commits.driver = None
            if driver is not None:
                await driver.stop()
                if not is_late:
                    await driver.leave(reason)

    def _begin(self) -> None:
        """On the first call inside an event loop, watch the fetcher. Raises ClientError outside of this loop."""
        self._open()
        self._check_loop()
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self.native.arrived_descriptor(), self._arrive)
            self._commit_at = self._clock() + self.settings.auto_commit_interval_ms / 1000
        self._topics.begin()

    def _check_loop(self) -> None:
        if running_loop("AsyncConsumer") is not (self._loop or asyncio.get_running_loop()):
            raise ClientError("AsyncConsumer belongs to another event loop: create one for each loop")

    def _open(self) -> None:
        if self._closed:
            raise ClosedError("the consumer is closed")

    def _clock(self) -> float:
        return asyncio.get_running_loop().time()

    def _arrive(self) -> None:
        self.native.clear_signal()
        self._news.set()

    def _notify(self) -> None:
        self._due = True
        self._news.set()

    def _responses(self) -> float | None:
        """Return how many responses the fetcher has received; None where it reads no partition."""
        return self.native.metrics()["response-total"] if self._state.reads() else None

    def _topics_changed(self, failure: Exception | None) -> None:
        """Handle a change of the topics, or a failure of the topic watch."""
        self._failure = failure or self._failure
        if self._driver is not None and failure is None:
            if self._topics.follows_pattern():
                self._resubscribe("topics that match the pattern have changed")
            self._driver.topics_changed()
        self._notify()
