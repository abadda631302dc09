"""Arrow data that a producer sends, and the delivery that an asyncio producer returns for it.

Owns which exports of Arrow's PyCapsule interface are accepted. The engine checks the columns and sends the rows.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Protocol

from pybroker.client import native
from pybroker.client.errors import SettingError


class ArrowArray(Protocol):
    """An object that exports an array by Arrow's PyCapsule interface."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Return capsules with schema and array."""
        ...


class ArrowStream(Protocol):
    """An object that exports a stream of arrays by Arrow's PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return a capsule with the stream."""
        ...


def sending(
    producer: native.Producer, batch: ArrowArray | ArrowStream, topic: str | None, *, calls_partitioner: bool
) -> Callable[[], native.RowsDelivery]:
    """Export Arrow data. Returns the engine's call that sends its rows, which waits as `Producer.send_columns`.

    Args:
        calls_partitioner: the producer's partitioner is a function, which is not called for rows.

    Raises:
        SettingError: the data exports neither an array nor a stream, or lacks the partitions.
    """
    array = getattr(batch, "__arrow_c_array__", None)
    stream = getattr(batch, "__arrow_c_stream__", None)
    if array is None and stream is None:
        raise SettingError(f"{type(batch).__name__}: must be a record batch, a table or a stream of Arrow")
    names = getattr(getattr(batch, "schema", None), "names", ())
    if calls_partitioner and "partition" not in (names() if callable(names) else names):
        raise SettingError("send_columns does not call the partitioner: add a column partition to the batch")
    if array is not None:
        return functools.partial(producer._send_batch, array(), topic)
    assert stream is not None
    return functools.partial(producer._send_stream, stream(), topic)


class AsyncRowsDelivery:
    """The delivery of Arrow rows that an `AsyncProducer` sent together; `len` is the number of rows."""

    def __init__(self, rows: native.RowsDelivery) -> None:
        self._rows = rows
        self._decided = asyncio.Event()

    def __len__(self) -> int:
        return len(self._rows)

    def __bool__(self) -> bool:
        """True, also where no row was sent."""
        return True

    def done(self) -> bool:
        """Whether every row is acknowledged or failed."""
        return self._rows.done()

    async def result(self) -> int:
        """Wait until every row is acknowledged, and return the number of rows.

        Raises the error of the first row that failed, with the count of failures, once every row is acknowledged or
        failed.
        """
        await self._decided.wait()
        return self._rows.result(0)


class PendingRows:
    """The incomplete row deliveries of one asyncio producer."""

    def __init__(self) -> None:
        self._pending: list[AsyncRowsDelivery] = []

    def add(self, delivery: AsyncRowsDelivery) -> None:
        """Add a delivery."""
        self._pending.append(delivery)
        self.complete()

    def complete(self) -> bool:
        """Complete the deliveries that have finished. Returns whether there were any."""
        before, self._pending = self._pending, []
        for delivery in before:
            if delivery.done():
                delivery._decided.set()
            else:
                self._pending.append(delivery)
        return len(self._pending) < len(before)
