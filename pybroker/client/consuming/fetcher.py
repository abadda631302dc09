"""Fetchers: readers of assigned partitions, blocking and over asyncio, as thin wrappers of one native engine.

The engine owns connections, offset queries, prefetching and validation of received batches. No groups: the caller
assigns partitions. Works with any Kafka.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence

from pybroker.client import native
from pybroker.client.administration.topics import EARLIEST, LATEST, TopicPartition
from pybroker.client.closing import AsyncClosing, Closing
from pybroker.client.errors import ClientError, SettingError
from pybroker.client.metrics import MetricValue, build_lags, consumer_values
from pybroker.client.one_caller import FREE_CALLS, TaskCalls, ThreadCalls, one_caller
from pybroker.client.security import open_security
from pybroker.client.settings import FetcherSettings

Record = native.Record


def make_native(settings: FetcherSettings) -> native.Fetcher:
    """Create a native fetcher with these settings. Raises SettingError."""
    open_security(settings)
    try:
        return native.Fetcher(settings)
    except (ValueError, OverflowError) as error:
        raise SettingError(str(error)) from None


def starts_of(
    partitions: Mapping[TopicPartition, int | None] | Sequence[TopicPartition], settings: FetcherSettings
) -> list[tuple[str, int, int]]:
    """Return (topic, partition, start offset) for the engine; `auto.offset.reset` defines missing start offsets.

    Raises SettingError with `auto.offset.reset=none`.
    """
    starts = partitions if isinstance(partitions, Mapping) else dict.fromkeys(partitions)
    default = {"earliest": EARLIEST, "latest": LATEST}.get(settings.auto_offset_reset)
    assignment = []
    for partition, offset in starts.items():
        start = default if offset is None else offset
        if start is None:
            raise SettingError(f"{partition}: no start offset, and auto.offset.reset={settings.auto_offset_reset}")
        assignment.append((partition.topic, partition.partition, start))
    return assignment


class _Assigned:
    """The common part of both fetchers: settings, assignment, and records that were taken but not returned."""

    def __init__(self, bootstrap_servers: str, properties: Mapping[str, object] | None = None) -> None:
        self.settings = FetcherSettings.of_client(bootstrap_servers, properties)
        self.native = make_native(self.settings)
        """The engine, for load generators: `count` reads every record without making Python objects."""
        self._rest: native.Received | None = None

    def assign(self, partitions: Mapping[TopicPartition, int | None] | Sequence[TopicPartition]) -> None:
        """Read these partitions from now on, and no others.

        Each starts at its offset (`EARLIEST` and `LATEST` are offsets too), or as `auto.offset.reset` defines.
        """
        assignment = starts_of(partitions, self.settings)
        self._rest = None
        self.native.assign(assignment)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Set the position of one assigned partition. Raises ClientError when it is not assigned."""
        rest, self._rest = self._rest, None
        if rest is not None and (rest.topic, rest.partition) != (partition.topic, partition.partition):
            at = rest.next_offset
            if at is not None:
                # Records that were taken but not returned are read again.
                self.native.seek(rest.topic, rest.partition, at)
        if not self.native.seek(partition.topic, partition.partition, offset):
            raise ClientError(f"{partition} is not assigned")

    def positions(self) -> dict[TopicPartition, int]:
        """Return the next offset of each partition; below 0 (`EARLIEST`, `LATEST`) before its first record."""
        found = {TopicPartition(topic, index): offset for topic, index, offset in self.native.positions()}
        rest = self._rest
        if rest is not None and (at := rest.next_offset) is not None:
            found[TopicPartition(rest.topic, rest.partition)] = at
        return found

    def metrics(self) -> dict[str, float]:
        """Return the fetcher's metrics by the names of Kafka's consumer metrics; see `AsyncConsumer.metrics`."""
        return self.native.metrics()

    def partition_metrics(self) -> dict[TopicPartition, dict[str, float]]:
        """As `AsyncConsumer.partition_metrics`."""
        return build_lags(self.native.lags())

    def metric_values(self) -> list[MetricValue]:
        """As `AsyncConsumer.metric_values`."""
        return consumer_values(self.metrics(), self.partition_metrics(), self.settings.client_id)

    def _hand_out(self, limit: int | None) -> list[Record]:
        """Return at most `limit` records (default: `max.poll.records`) that were taken but not returned yet."""
        rest = self._rest
        records = [] if rest is None else rest.take(self.settings.max_poll_records if limit is None else limit)
        if rest is not None and not len(rest):
            self._rest = None
        return records

    def _take(self, timeout_s: float) -> bool:
        """Take records from the engine. Returns whether any arrived before the timeout."""
        taken = self.native.take(timeout_s)
        self._rest = taken if taken is not None and len(taken) else None
        return taken is not None


@one_caller(free=FREE_CALLS)
class Fetcher(_Assigned, Closing):
    """`with Fetcher("127.0.0.1:9092") as f: f.assign([TopicPartition("orders", 0)]); f.poll()`.

    One thread at a time: a call while another thread is inside raises ConcurrentAccessError. Any thread may close it.
    """

    def __init__(self, bootstrap_servers: str, properties: Mapping[str, object] | None = None) -> None:
        super().__init__(bootstrap_servers, properties)
        self._calls = ThreadCalls("Fetcher")

    def poll(self, timeout_s: float = 1.0, max_records: int | None = None) -> list[Record]:
        """Return the next records of one partition, at most `max_records` (default: `max.poll.records`).

        Returns none after the timeout. Raises the error of a broker's response or of a received batch.
        """
        deadline = time.monotonic() + timeout_s
        while self._rest is None and self._take(max(0.0, deadline - time.monotonic())):
            pass
        return self._hand_out(max_records)

    def close(self) -> None:
        """Close; waits for the I/O thread. A `poll` of another thread raises ClosedError."""
        self.native.close()


@one_caller(free=FREE_CALLS)
class AsyncFetcher(_Assigned, AsyncClosing):
    """`async with AsyncFetcher("127.0.0.1:9092") as f: f.assign(...); await f.poll()`. For one event loop.

    One task at a time: a call while a call of another task is under way raises ConcurrentAccessError.
    """

    def __init__(self, bootstrap_servers: str, properties: Mapping[str, object] | None = None) -> None:
        super().__init__(bootstrap_servers, properties)
        self._calls = TaskCalls("AsyncFetcher")
        self._arrived: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def poll(self, timeout_s: float = 1.0, max_records: int | None = None) -> list[Record]:
        """As `Fetcher.poll`, without blocking the event loop."""
        if self._arrived is None:
            self._loop, self._arrived = asyncio.get_running_loop(), asyncio.Event()
            self._loop.add_reader(self.native.arrived_descriptor(), self._arrive)
        elif self._loop is not asyncio.get_running_loop():
            raise ClientError("AsyncFetcher belongs to another event loop: create one for each loop")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while self._rest is None:
                    if not self._take(0.0):
                        await self._arrived.wait()
                        self._arrived.clear()
        return self._hand_out(max_records)

    async def close(self) -> None:
        """Close; waits for the I/O thread. A `poll` of another task raises ClosedError."""
        self._calls.interrupt()
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self.native.arrived_descriptor())
            self._loop = None
        await asyncio.to_thread(self.native.close)

    def _arrive(self) -> None:
        self.native.clear_signal()
        assert self._arrived is not None
        self._arrived.set()
