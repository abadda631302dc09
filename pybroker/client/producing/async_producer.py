"""The producer over asyncio: sends append to batches on the event loop, acknowledgements complete futures.

A send starts no thread. It waits only while its topic's metadata is missing or `buffer.memory` is full. The engine
reports acknowledgements in groups: it wakes the loop by a descriptor, and all their futures complete at that
wake-up.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Generic, Self, overload

from pybroker.client import native
from pybroker.client.closing import AsyncClosing
from pybroker.client.column_sending import ArrowArray, ArrowStream, AsyncRowsDelivery, PendingRows, sending
from pybroker.client.errors import (
    ClientError,
    DeliveryError,
    SettingError,
    TransactionAbortableError,
    TransactionFatalError,
)
from pybroker.client.metrics import MetricValue, producer_values
from pybroker.client.producing.delivery_callbacks import OnDelivery, as_metadata, call
from pybroker.client.producing.exiting import end, left_s
from pybroker.client.producing.producer import CLOSE_TIMEOUT_S, Headers, native_arguments, read_settings
from pybroker.client.producing.record_functions import Functions, Key, Partitioner, Serializer, Value
from pybroker.client.producing.record_metadata import RecordMetadata
from pybroker.client.producing.undelivered import Failure, Undelivered, UnobservedFutures, noted
from pybroker.client.producing.waiting_sends import WaitingSends
from pybroker.client.transaction.blocking import CALLS
from pybroker.client.transaction.consumed import Consuming, GivenOffsets, offsets_of
from pybroker.client.transaction.driver import TransactionDriver
from pybroker.client.transaction.group_metadata import GroupMetadata

_log = logging.getLogger("pybroker.client")


class AsyncProducer(AsyncClosing, Generic[Key, Value]):
    """`async with AsyncProducer("127.0.0.1:9092") as p: await p.send("orders", b"...")`. For one event loop."""

    _is_open = False

    @overload
    def __init__(
        self: AsyncProducer[bytes | bytearray, bytes | bytearray],
        bootstrap_servers: str,
        properties: Mapping[str, object] | None = None,
        *,
        key_serializer: None = None,
        value_serializer: None = None,
        partitioner: Partitioner | str | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: AsyncProducer[Any, Any],
        bootstrap_servers: str,
        properties: Mapping[str, object] | None = None,
        *,
        key_serializer: Serializer | None = None,
        value_serializer: Serializer | None = None,
        partitioner: Partitioner | str | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> None: ...
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
        self._max_block_s = settings.max_block_ms / 1000
        self._client_id, self._exit_s = settings.client_id, settings.exit_flush_timeout_ms / 1000
        self._transactions = None if settings.transactional_id is None else TransactionDriver(self.native, settings)
        self._post = self.native._post
        self._on_delivery = on_delivery
        self._undelivered, self._unobserved = Undelivered(settings.unobserved_failures), UnobservedFutures()
        self._settlements = self.native._settlements()
        self._waiting = WaitingSends(self.native, settings.max_block_ms / 1000)
        self._waits = self._waiting.queues
        self._calls_partitioner = callable(partitioner)
        self._rows, self._sending_columns = PendingRows(), asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_open = True

    def __del__(self) -> None:
        """Log the records that are lost with a producer that was not closed. Where its loop has ended, flush first."""
        if self._is_open:
            self._is_open = False
            self._log_failures()
            has_ended = self._loop is not None and self._loop.is_closed()
            end(self.native, "AsyncProducer", lambda: self.native.close(self._exit_s if has_ended else 0.0))

    def _end_at_exit(self, began: float) -> None:
        """As `Producer._end_at_exit`."""
        if self._is_open:
            self._is_open = False
            self._log_failures()
            end(self.native, "AsyncProducer", lambda: self.native.close(left_s(self._exit_s, began)))

    async def _leave_async(self, error: BaseException | None) -> None:
        if error is None:
            return await self.close()
        try:
            await self.close(0.0)
        except ClientError as failure:
            noted(error, failure)

    async def send(
        self,
        topic: str,
        value: Value | None,
        key: Key | None = None,
        *,
        partition: int = -1,
        timestamp_ms: int | None = None,
        headers: Headers | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        """Append a record to its batch. The returned future completes with the record's metadata once it is
        acknowledged.

        The records of a partition are written in the order in which the calls began, also those that waited: for the
        topic's metadata (before its first record) or for memory, at most `max.block.ms`. A send that is cancelled
        while it waits sends nothing. `on_delivery` is called on the event loop, as documented for `Producer.send`.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._begin(loop)
        future: asyncio.Future[RecordMetadata] = asyncio.Future(loop=loop)
        callback = on_delivery or self._on_delivery
        watcher = future if callback is None else _Called(future, callback)
        waits = topic in self._waits
        outgoing = self._post(topic, value, key, partition, timestamp_ms, headers, watcher, waits)
        if outgoing is not None:
            await self._waiting.wait(topic, outgoing, watcher)
        return future

    async def send_columns(self, batch: ArrowArray | ArrowStream, *, topic: str | None = None) -> AsyncRowsDelivery:
        """Send a record for every row of Arrow data, as `Producer.send_columns`, without blocking the event loop.

        A thread checks the rows and waits for metadata and memory; the calls of one producer run one after the
        other. Returns the rows' `AsyncRowsDelivery`: `await delivery.result()` waits until all are acknowledged, or
        raises the first failure. A call that is cancelled while it waits may still send its rows. Raises as
        `Producer.send_columns`.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._begin(loop)
        send = sending(self.native, batch, topic, calls_partitioner=self._calls_partitioner)
        async with self._sending_columns:
            delivery = AsyncRowsDelivery(await asyncio.to_thread(send))
        self._rows.add(delivery)
        return delivery

    def metrics(self) -> dict[str, float]:
        """As `Producer.metrics`."""
        return self.native.metrics()

    def metric_values(self) -> list[MetricValue]:
        """As `Producer.metric_values`."""
        return producer_values(self.metrics(), self._client_id)

    async def flush(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """Wait until every record sent so far is acknowledged or has failed.

        Raises the first failure of a record as `Producer.flush`, except those of futures that were awaited or
        cancelled.
        """
        await asyncio.to_thread(self.native.flush, timeout_s)
        self._complete()
        await self._report()

    async def init_transactions(self, timeout_s: float | None = None) -> None:
        """As `Producer.init_transactions`."""
        await self._transactional().init(self._left_ms(self._deadline(timeout_s)))

    def begin_transaction(self) -> None:
        """As `Producer.begin_transaction`."""
        self._transactional().begin()

    async def commit_transaction(self, timeout_s: float | None = None) -> None:
        """As `Producer.commit_transaction`; a send that still waits for metadata or memory is in no transaction."""
        await self._end_transaction(timeout_s, commits=True)

    async def abort_transaction(self, timeout_s: float | None = None) -> None:
        """As `Producer.abort_transaction`."""
        await self._end_transaction(timeout_s, commits=False)

    async def send_offsets_to_transaction(
        self,
        consumed: Consuming | GivenOffsets,
        group: GroupMetadata | str | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """As `Producer.send_offsets_to_transaction`."""
        timeout_ms = self._left_ms(self._deadline(timeout_s))
        await self._transactional().send_offsets(offsets_of(consumed, group), timeout_ms)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """As `Producer.transaction`: `async with producer.transaction():`."""
        self.begin_transaction()
        try:
            yield self
        except BaseException as error:
            await self._abort_after(error)
            raise
        try:
            await self.commit_transaction()
        except TransactionAbortableError as error:
            await self._abort_after(error)
            raise

    async def _end_transaction(self, timeout_s: float | None, *, commits: bool) -> None:
        transactions, deadline, call = self._transactional(), self._deadline(timeout_s), CALLS[commits]
        transactions.begin_end(commits=commits)
        if self.native.incomplete_batches():
            try:
                await self.flush(max(0.0, deadline - time.monotonic()))
            except DeliveryError as error:
                raise transactions.timeout_error(call, error) from error
        await transactions.end(call, self._left_ms(deadline))

    async def _abort_after(self, error: BaseException) -> None:
        """As `Producer._abort_after`."""
        try:
            if self._transactional().is_open:
                await self.abort_transaction()
        except ClientError as failure:
            if isinstance(error, TransactionAbortableError) and isinstance(failure, TransactionFatalError):
                raise failure from error
            error.add_note(f"the transaction could not be aborted: {failure}")

    def _transactional(self) -> TransactionDriver:
        if self._transactions is None:
            raise SettingError("transactional.id is not set: this producer has no transactions")
        return self._transactions

    def _deadline(self, timeout_s: float | None) -> float:
        return time.monotonic() + (self._max_block_s if timeout_s is None else timeout_s)

    @staticmethod
    def _left_ms(deadline: float) -> int:
        return max(0, round((deadline - time.monotonic()) * 1000))

    async def close(self, timeout_s: float = CLOSE_TIMEOUT_S) -> None:
        """Flush and close. Records that are not acknowledged before the timeout fail. An open transaction is aborted.

        Raises as `flush`, once the producer is closed.
        """
        try:
            if self._transactions is not None:
                await self._close_transactions(self._transactions, timeout_s)
            await asyncio.to_thread(self.native.close, timeout_s)
        except ClientError:
            self._end()
            self._undelivered.warn(self._failures(take=True))
            raise
        except BaseException:
            self._end()
            raise
        self._end()
        await self._report()

    def _end(self) -> None:
        self._is_open = False
        if self._loop is not None:
            self._loop.remove_reader(self._settlements.descriptor())
            self._loop = None
        self._complete()

    async def _report(self) -> None:
        """Report undelivered records, after the tasks that await their futures have run."""
        await asyncio.sleep(0)
        self._undelivered.report(self._failures(take=True))

    def _log_failures(self) -> None:
        self._undelivered.warn(self._failures(take=False))

    def _failures(self, *, take: bool) -> list[Failure]:
        """Return the failures of futures that were not retrieved, and of rows, which the engine counts."""
        return [*self._unobserved.failures(take=take), *self.native._failures(take=take)]

    async def _close_transactions(self, transactions: TransactionDriver, timeout_s: float) -> None:
        if timeout_s > 0 and transactions.is_open:
            try:
                await self.abort_transaction(timeout_s)
            except ClientError as error:
                _log.warning("A transaction was left open: %s", error)
        await transactions.close()

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._loop is not None:
            # No loop would complete the futures of the first loop.
            raise ClientError("AsyncProducer belongs to another event loop: create one for each loop")
        self._loop = loop
        loop.add_reader(self._settlements.descriptor(), self._complete)

    def _complete(self) -> None:
        """Complete the futures of acknowledged and failed records, and let waiting sends retry."""
        for futures, rows, errors in self._settlements.take() or ():
            if errors is None:
                for future, row in zip(futures, rows, strict=True):
                    try:
                        future.set_result(as_metadata(row))
                    except asyncio.InvalidStateError:  # The future was cancelled.
                        continue
            else:
                for future, row, error in zip(futures, rows, errors, strict=True):
                    self._fail(future, error, as_metadata(row))
                if self._loop is not None:
                    # Tasks that await these futures run first.
                    self._loop.call_soon(self._log_failures)
        if self._rows.complete() and self._loop is not None:
            self._loop.call_soon(self._log_failures)
        self._waiting.wake()

    def _fail(
        self, watcher: asyncio.Future[RecordMetadata] | _Called, error: Exception, metadata: RecordMetadata
    ) -> None:
        if isinstance(watcher, _Called):
            watcher.fail(error, metadata)
        elif not watcher.done():
            watcher.set_exception(error)
            # The end of a transaction reports its failures.
            if self._transactions is None:
                self._unobserved.add(watcher, error, metadata)
        elif self._transactions is None:
            self._undelivered.warn([(error, metadata.topic, metadata.partition, 1)])


class _Called:
    """A future with a delivery callback, which is called even if the future was cancelled."""

    __slots__ = ("_callback", "_future")

    def __init__(self, future: asyncio.Future[RecordMetadata], callback: OnDelivery) -> None:
        self._future, self._callback = future, callback

    def done(self) -> bool:
        """False: the callback must be called in any case."""
        return False

    def _call(self, error: Exception | None, metadata: RecordMetadata) -> None:
        ended = call(self._callback, error, metadata)
        if ended is not None:
            # The loop raises it after the other callbacks were called.
            self._future.get_loop().call_soon(_raise, ended)

    def set_result(self, metadata: RecordMetadata) -> None:
        self._call(None, metadata)
        if not self._future.done():
            self._future.set_result(metadata)

    def fail(self, error: Exception, metadata: RecordMetadata) -> None:
        self._call(error, metadata)
        if not self._future.done():
            self._future.set_exception(error)
            # The callback got the error, so asyncio must not log it.
            self._future.exception()


def _raise(error: BaseException) -> None:
    raise error
