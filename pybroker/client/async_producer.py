"""The producer over asyncio: records enter their batches on the event loop, and their fates come back in batches.

A send takes no thread and waits only while its topic's metadata is missing or `buffer.memory` is full. What was decided
wakes the loop once, by a descriptor, and all its futures are completed at that wake-up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from pybroker.client import native
from pybroker.client.delivery_callbacks import OnDelivery, as_metadata, call
from pybroker.client.errors import SettingError
from pybroker.client.producer import CLOSE_TIMEOUT_S, Headers, native_arguments, read_settings
from pybroker.client.record_functions import Functions, Partitioner, Serializer
from pybroker.client.record_metadata import RecordMetadata
from pybroker.client.waiting_sends import WaitingSends


class AsyncProducer:
    """`async with AsyncProducer("127.0.0.1:9092") as p: await p.send("orders", b"...")`. For one event loop."""

    def __init__(
        self,
        bootstrap_servers: str,
        properties: Mapping[str, object] | None = None,
        *,
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
        partitioner: Partitioner | str | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> None:
        functions = Functions(key_serializer, value_serializer, partitioner, on_delivery)
        settings = read_settings(bootstrap_servers, properties, functions)
        arguments = native_arguments(settings, functions, None)
        try:
            self.native = native.Producer(settings, **arguments, on_delivery=None, begin_watching=None)
        except (ValueError, OverflowError) as error:
            raise SettingError(str(error)) from None
        self._post = self.native.post
        self._on_delivery = on_delivery
        self._settlements = self.native.settlements()
        self._waiting = WaitingSends(self.native, settings.max_block_ms / 1000)
        self._waits = self._waiting.queues
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(CLOSE_TIMEOUT_S if error is None else 0.0)

    async def send(
        self,
        topic: str,
        value: object,
        key: object = None,
        *,
        partition: int = -1,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        """Put a record in its batch; the future that is returned completes with where it was written.

        Records of a partition are written in the order in which these calls began to run, also those that had to wait:
        for the topic's metadata (before its first record) or for memory, at most `max.block.ms`. A send that is
        cancelled while it waits sends nothing. `on_delivery` is called on the event loop, as `Producer.send` says.
        """
        loop = self._loop or self._begin()
        future: asyncio.Future[RecordMetadata] = asyncio.Future(loop=loop)
        callback = on_delivery or self._on_delivery
        watcher = future if callback is None else _Called(future, callback)
        waits = topic in self._waits
        outgoing = self._post(topic, value, key, partition, timestamp_ms, headers, watcher, waits)
        if outgoing is not None:
            await self._waiting.wait(topic, outgoing, watcher)
        return future

    def metrics(self) -> dict[str, float]:
        """As `Producer.metrics`."""
        return self.native.metrics()

    async def flush(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """Wait until everything sent so far is acknowledged or given up."""
        await asyncio.to_thread(self.native.flush, timeout_s)
        self._settle()

    async def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """Flush and end; what is not acknowledged after the timeout is given up."""
        try:
            await asyncio.to_thread(self.native.close, timeout_s)
        finally:
            if self._loop is not None:
                self._loop.remove_reader(self._settlements.descriptor())
                self._loop = None
            self._settle()

    def _begin(self) -> asyncio.AbstractEventLoop:
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._settlements.descriptor(), self._settle)
        return self._loop

    def _settle(self) -> None:
        """Complete the futures of the fates that are known by now, and let waiting sends try again."""
        for futures, rows, errors in self._settlements.take() or ():
            if errors is None:
                for future, row in zip(futures, rows, strict=True):
                    try:
                        future.set_result(as_metadata(row))
                    except asyncio.InvalidStateError:  # It was cancelled.
                        continue
            else:
                for future, row, error in zip(futures, rows, errors, strict=True):
                    _fail(future, error, as_metadata(row))
        self._waiting.wake()


class _Called:
    """A future with a delivery callback, which is called also where the future was cancelled."""

    __slots__ = ("_callback", "_future")

    def __init__(self, future: asyncio.Future[RecordMetadata], callback: OnDelivery) -> None:
        self._future, self._callback = future, callback

    def done(self) -> bool:
        """False: the callback is called in any case."""
        return False

    def set_result(self, metadata: RecordMetadata) -> None:
        call(self._callback, None, metadata)
        if not self._future.done():
            self._future.set_result(metadata)

    def fail(self, error: Exception, metadata: RecordMetadata) -> None:
        call(self._callback, error, metadata)
        _fail(self._future, error, metadata)


def _fail(watcher: asyncio.Future[RecordMetadata] | _Called, error: Exception, metadata: RecordMetadata) -> None:
    if isinstance(watcher, _Called):
        watcher.fail(error, metadata)
    elif not watcher.done():
        watcher.set_exception(error)
