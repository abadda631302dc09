"""The common part of all membership drivers: tasks, the search for the coordinator, the failure.

Owns the interface for the consumer. Must not know any protocol.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any

from pybroker.client.administration.topics import TopicPartition
from pybroker.client.consuming.topic_watch import TopicWatch
from pybroker.client.errors import BrokerError, ConnectionLostError, UnreachableError
from pybroker.client.membership.events import CommitRefused
from pybroker.client.membership.machine import MemberMachine
from pybroker.client.membership.rebalance_step import RebalanceStep, Remedy
from pybroker.client.metrics import GroupSensors
from pybroker.client.network.cluster import Cluster
from pybroker.client.network.connection import Connection
from pybroker.client.network.retry_budget import Backoff
from pybroker.client.network.retrying import draw_jitter
from pybroker.client.settings import ConsumerSettings
from pybroker.protocol.errors import ErrorCode

Identity = tuple[str, int, str | None]
"""Member id, generation or epoch, instance id: the identity in commits."""

_log = logging.getLogger("pybroker.client")

_SILENT = "consumer poll timeout has expired."
_SILENT_LINE = (
    "Group %s: consumer poll timeout has expired, and member %s leaves. The time between two polls was longer than "
    "max.poll.interval.ms=%d: the program takes too long for the records of one poll. Raise max.poll.interval.ms, or "
    "lower max.poll.records"
)


class MembershipDriver(ABC):
    """Keeps a member in its group."""

    member: MemberMachine[Any]
    """The state machine of the member."""

    def __init__(
        self, cluster: Cluster, settings: ConsumerSettings, topics: TopicWatch, notify: Callable[[], None]
    ) -> None:
        assert settings.group_id is not None
        self.group = settings.group_id
        self.cluster, self.settings, self.topics = cluster, settings, topics
        self.sensors = GroupSensors(settings)
        """Metrics of the membership. The consumer replaces them by its own, which outlive a driver."""
        self.failure: Exception | None = None
        """The reason why the membership has ended for good; the next poll raises it."""
        self._notify = notify
        self._changed = asyncio.Event()
        self._backoff = Backoff.of(settings)
        self._failures = 0
        """Consecutive failed attempts, which define the back-off."""
        self._tasks: list[asyncio.Task[None]] = []

    # The interface for the program.

    @abstractmethod
    def subscribe(self, keeps: frozenset[TopicPartition], reason: str, /) -> None:
        """Subscribe. `keeps` are the partitions that the program has and that are still subscribed."""

    @abstractmethod
    def poll(self) -> None:
        """Record that the program polls."""

    @abstractmethod
    def rebalance_step(self) -> RebalanceStep | None:
        """Return the rebalance step that the program must do now."""

    @abstractmethod
    def step_done(self, step: RebalanceStep) -> None:
        """Record that the program has completed the step."""

    @abstractmethod
    def identity(self) -> Identity:
        """Return the identity with which offsets are committed."""

    def commit_refused(self, code: int, identity: Identity) -> None:
        """Pass the error code of a commit with this identity to the machine."""
        self.drive(CommitRefused(code, identity[1]))
        self.wake()

    @abstractmethod
    async def leave(self, reason: str, /) -> None:
        """Leave the group, as far as the coordinator can be reached."""

    @abstractmethod
    def topics_changed(self) -> None:
        """Handle a change of topics or partition counts."""

    @abstractmethod
    def owned(self) -> frozenset[TopicPartition]:
        """Return the partitions that the group has assigned to the program."""

    # The tasks.

    def drive(self, event: Any) -> Remedy:
        """Pass an event that happens now to the machine, and apply its decision."""
        outcome = self.member.handle(event, asyncio.get_running_loop().time())
        self.member.apply(outcome.membership)
        return outcome.remedy

    @abstractmethod
    def loops(self) -> list[Callable[[], Awaitable[None]]]:
        """Return the functions that run as tasks while the driver is started."""

    def start(self) -> None:
        """Start the tasks; a driver that was stopped may start again."""
        if not self._tasks:
            self._tasks = [asyncio.ensure_future(self._guard(loop)) for loop in self.loops()]

    async def stop(self) -> None:
        """Cancel the tasks; sends nothing to the coordinator."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def wake(self) -> None:
        """Wake the tasks and the program after a change of the machine."""
        self._changed.set()
        self._notify()

    async def sleep_until(self, moment: float) -> None:
        """Wait until a time of the loop's clock or until a change, whichever comes first."""
        left = moment - asyncio.get_running_loop().time()
        self._changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if left == float("inf") else max(0.0, left)):
                await self._changed.wait()

    async def attempt(self, query: Callable[[Connection], Awaitable[tuple[Remedy, int]]]) -> bool:
        """Send one request to the coordinator, and execute the machine's remedy. Returns false without a response."""
        try:
            connection = await self.cluster.coordinator(self.group)
            remedy, code = await query(connection)
        except (ConnectionLostError, UnreachableError):
            self.cluster.forget_coordinator(self.group)
            self.topics.check()
            await self._back_off()
            return False
        except BrokerError as error:
            if error.code not in (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
                self.fail(error)
            await self._back_off()
            return False
        except Exception as error:  # noqa: BLE001 (an assignor's, or of bytes that another member sent: tried again)
            self.fail(error)
            await self._back_off()
            return False
        if remedy is Remedy.FAIL:
            self.fail(BrokerError.of(connection.server, f"group {self.group!r}", code, None))
        if remedy is Remedy.SEARCH:
            self.cluster.forget_coordinator(self.group)
        if remedy in (Remedy.SEARCH, Remedy.WAIT):
            await self._back_off()
        else:
            self._failures = 0
        self.wake()
        return True

    def fail(self, failure: Exception) -> None:
        """Report the failure to the program with its next poll."""
        self.failure = failure
        self.wake()

    async def leave_as_silent(self) -> None:
        """Leave the group because the program did not poll for longer than max.poll.interval.ms."""
        _log.warning(_SILENT_LINE, self.group, self.identity()[0], self.settings.max_poll_interval_ms)
        await self.leave(_SILENT)

    async def _guard(self, loop: Callable[[], Awaitable[None]]) -> None:
        try:
            await loop()
        except Exception as error:  # noqa: BLE001 (an assignor's failure, say: it is the program's to know)
            self.fail(error)

    async def _back_off(self) -> None:
        self._failures += 1
        await asyncio.sleep(self._backoff.after(self._failures, draw_jitter()))


MakeDriver = Callable[[Cluster, ConsumerSettings, TopicWatch, Callable[[], None]], MembershipDriver]
"""Creates the driver of a consumer: its cluster, settings and topics, and the function that wakes the program."""
