"""A consumer's commits: their order, and the handling of their errors.

Owns the order (a commit waits for those before it) and the callbacks of background commits. Must not know positions:
the offsets are arguments.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from pybroker.client.administration.groups import OffsetAndMetadata, Offsets
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.consuming import group_offsets
from pybroker.client.drivers.driver import Identity, MembershipDriver
from pybroker.client.errors import BrokerError, ClientError, CommitFailedError, ConnectionLostError, UnreachableError
from pybroker.client.metrics import GroupSensors
from pybroker.client.network.cluster import SEARCH_AGAIN, SEND_AGAIN, Cluster
from pybroker.client.network.connection import Connection
from pybroker.client.network.retry_budget import is_retriable
from pybroker.client.network.retrying import retry
from pybroker.client.settings import ConsumerSettings
from pybroker.protocol.errors import ErrorCode

Callback = Callable[[Offsets, Exception | None], None]

_NOBODY: Identity = ("", -1, None)
_NOT_A_MEMBER = {
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.FENCED_MEMBER_EPOCH,
}
_LATER = {*SEND_AGAIN, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.STALE_MEMBER_EPOCH}
"""Error codes after which a commit is retried."""


def _may_pass(failure: ClientError) -> bool:
    if isinstance(failure, BrokerError):
        return failure.code in _LATER and not isinstance(failure, CommitFailedError)
    return is_retriable(failure)


class Commits:
    """Commits and reads the offsets of one group."""

    def __init__(
        self, cluster: Cluster, settings: ConsumerSettings, notify: Callable[[], None], sensors: GroupSensors
    ) -> None:
        self._sensors = sensors
        self.driver: MembershipDriver | None = None
        """The membership driver, whose identity commits contain; None without membership."""
        self._cluster, self._settings, self._notify = cluster, settings, notify
        self._order = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._done: deque[tuple[Callback, Offsets, Exception | None]] = deque()

    @property
    def group(self) -> str:
        """Return the group id. Raises ClientError without one."""
        if self._settings.group_id is None:
            raise ClientError("offsets are stored for a group: set group.id")
        return self._settings.group_id

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], timeout_s: float) -> None:
        """Commit, with retries after retriable errors.

        Raises CommitFailedError (this member may not commit these offsets any more), BrokerError, UnreachableError.
        """
        async with self._order:
            if offsets:
                timeout_ms = round(timeout_s * 1000)
                await retry(self._settings, lambda: self._once(offsets), timeout_ms=timeout_ms, again=_may_pass)

    def commit_later(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], callback: Callback | None) -> None:
        """Commit once, in the background. A later `take_done` returns the callback."""
        task = asyncio.ensure_future(self._in_background(dict(offsets), callback))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def take_done(self) -> list[tuple[Callback, Offsets, Exception | None]]:
        """Return the callbacks of completed commits, and remove them."""
        done, self._done = list(self._done), deque()
        return done

    async def complete(self, timeout_s: float) -> None:
        """Wait for the background commits."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)
        for task in self._tasks:
            task.cancel()

    async def stable(self, partitions: Sequence[TopicPartition]) -> Offsets:
        """Fetch offsets, and wait for pending transactional offset commits. Raises BrokerError."""

        async def attempt() -> Offsets:
            offsets, unstable = await self.committed(partitions)
            for partition in sorted(unstable, key=lambda p: (p.topic, p.partition)):
                what = f"group {self.group!r} {partition}"
                raise BrokerError.of(
                    self._cluster.known_coordinator(self.group), what, ErrorCode.UNSTABLE_OFFSET_COMMIT, None
                )
            return offsets

        return await retry(self._settings, attempt)

    async def committed(
        self, partitions: Sequence[TopicPartition], *, as_member: bool = False
    ) -> tuple[Offsets, set[TopicPartition]]:
        """Fetch offsets: (offsets, partitions that must be retried). Raises BrokerError."""
        member = ("", -1)
        if as_member and self.driver is not None and self._settings.group_protocol == "consumer":
            member = self.driver.identity()[:2]

        async def query(connection: Connection) -> tuple[tuple[Offsets, group_offsets.Outcome, int, str], int]:
            offsets, errors, code = await group_offsets.fetch_offsets(
                connection, self.group, partitions, member=member, stable=True
            )
            return (offsets, errors, code, connection.server), code

        offsets, errors, code, server = await self._cluster.query_coordinator(self.group, query)
        if code in (ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
            return {}, set(partitions)
        if code:
            raise BrokerError.of(server, f"group {self.group!r}", code, None)
        unstable = {p for p, error in errors.items() if ErrorCode(error).retriable}
        for partition, error in errors.items():
            if partition not in unstable:
                raise BrokerError.of(server, f"group {self.group!r} {partition}", error, None)
        return offsets, unstable

    async def _once(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        identity = _NOBODY if self.driver is None else self.driver.identity()
        group = self.group
        try:
            connection = await self._cluster.coordinator(group)
            began = self._sensors.now()
            outcome = await group_offsets.commit_offsets(connection, group, offsets, identity)
        except (ConnectionLostError, UnreachableError):
            self._cluster.forget_coordinator(group)
            raise
        self._sensors.commit.record(self._sensors.now() - began)
        for partition, code in outcome.items():
            if code in SEARCH_AGAIN:
                self._cluster.forget_coordinator(group)
            if code:
                kind = CommitFailedError if code in _NOT_A_MEMBER else BrokerError
                if self.driver is not None:
                    self.driver.commit_refused(code, identity)
                raise kind.of(connection.server, f"offset of {partition} for group {group!r}", code, None)

    async def _in_background(self, offsets: Offsets, callback: Callback | None) -> None:
        failure: Exception | None = None
        try:
            async with self._order:
                if offsets:
                    await self._once(offsets)
        except ClientError as error:
            failure = error
        if callback is not None:
            self._done.append((callback, offsets, failure))
            self._notify()
