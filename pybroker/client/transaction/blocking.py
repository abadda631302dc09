"""Transactions for blocking code: the driver on an event loop in a thread of its own, from `init_transactions` on."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from pybroker.client import native
from pybroker.client.errors import ClosedError, DeliveryError
from pybroker.client.settings import ProducerSettings
from pybroker.client.transaction.consumed import Consumed
from pybroker.client.transaction.driver import TransactionDriver

Result = TypeVar("Result")

CALLS = {True: "commit_transaction", False: "abort_transaction"}
"""The call that ends a transaction, by whether it is committed; for messages."""


class BlockingTransactions:
    """One blocking producer's transactions. One thread at a time, which need not be the thread that sends."""

    def __init__(self, producer: native.Producer, settings: ProducerSettings) -> None:
        self.driver = TransactionDriver(producer, settings)
        self._max_block_s = settings.max_block_ms / 1000
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closing = threading.Lock()
        # Locked while a call is passed to the loop. Invariant: no call is passed once `_is_closed` is true, so the last
        # one, which ends the others, finds all of them.
        self._posting = threading.Lock()
        self._is_closed = False

    def init(self, timeout_s: float | None) -> None:
        """As `TransactionDriver.init`."""
        self._run(self.driver.init(self._left_ms(self._deadline(timeout_s))))

    def end(self, flush: Callable[[float], None], timeout_s: float | None, *, commits: bool) -> None:
        """Flush, and commit or abort. Raises TransactionError, TransactionStateError."""
        deadline, call = self._deadline(timeout_s), CALLS[commits]
        self.driver.begin_end(commits=commits)
        try:
            flush(max(0.0, deadline - time.monotonic()))
        except DeliveryError as error:
            raise self.driver.timeout_error(call, error) from error
        self._run(self.driver.end(call, self._left_ms(deadline)))

    def send_offsets(self, consumed: Consumed, timeout_s: float | None) -> None:
        """As `TransactionDriver.send_offsets`."""
        self._run(self.driver.send_offsets(consumed, self._left_ms(self._deadline(timeout_s))))

    def stop(self) -> None:
        """End the thread without waiting for it, for a producer that was not closed."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)

    def close(self) -> None:
        """Close the connections and end the thread. Another thread's call raises ClosedError; its `close` waits."""
        with self._closing:
            with self._posting:
                self._is_closed, loop, thread = True, self._loop, self._thread
            if loop is None or thread is None:
                return
            try:
                asyncio.run_coroutine_threadsafe(self._end_calls(), loop).result()
            finally:
                self._loop = None
                loop.call_soon_threadsafe(loop.stop)
                thread.join()
                loop.close()

    async def _end_calls(self) -> None:
        await self.driver.close()
        calls = asyncio.all_tasks() - {asyncio.current_task()}
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    def _deadline(self, timeout_s: float | None) -> float:
        return time.monotonic() + (self._max_block_s if timeout_s is None else timeout_s)

    @staticmethod
    def _left_ms(deadline: float) -> int:
        return max(0, round((deadline - time.monotonic()) * 1000))

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        with self._posting:
            if self._is_closed:
                work.close()
                raise ClosedError("the producer is closed")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="pybroker-transactions", daemon=True
                )
                self._thread.start()
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except CancelledError:
            raise ClosedError("the producer was closed by another thread") from None
        finally:
            future.cancel()
