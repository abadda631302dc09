"""Calls a blocking producer's delivery callbacks, on a thread of their own.

Owns the thread `pybroker-deliveries`, which starts with the first record that has a callback and ends with the
producer. The producer's I/O thread never runs a program's code: a slow callback delays only other callbacks.
"""

from __future__ import annotations

import functools
import logging
import select
import threading
from collections.abc import Callable

from pybroker.client import native
from pybroker.client.errors import DeliveryError
from pybroker.client.producing.record_metadata import RecordMetadata

OnDelivery = Callable[[Exception | None, RecordMetadata], object]
"""Called with the error of a record (None: it is acknowledged) and its metadata."""

as_metadata = functools.partial(tuple.__new__, RecordMetadata)
"""Converts a row of the engine to `RecordMetadata`, without the checks of `RecordMetadata._make`."""

_log = logging.getLogger("pybroker.client")


def call(callback: OnDelivery, error: Exception | None, metadata: RecordMetadata) -> BaseException | None:
    """Call a delivery callback and log its exception. Returns one that ends a program, such as SystemExit."""
    try:
        callback(error, metadata)
    except BaseException as raised:  # noqa: BLE001 (the records behind this one have callbacks too)
        where = f"topic {metadata.topic!r} partition {metadata.partition} offset {metadata.offset}"
        _log.exception("%s: the delivery callback %r failed", where, callback)
        return None if isinstance(raised, Exception) else raised
    return None


class DeliveryCallbacks:
    """One producer's callbacks. It keeps no reference to the producer, whose destructor ends this thread."""

    def __init__(self) -> None:
        self._settlements: native.Settlements | None = None
        self._thread: threading.Thread | None = None
        self._round = threading.Condition()
        self._begun = 0
        """Number of started rounds of the thread; each handles the records that completed before it."""
        self._done = 0
        """The last completed round: its callbacks have returned."""
        self._wanted = 0
        """The round that a `wait` waits for."""
        self._ends = False

    def start(self, settlements: native.Settlements) -> None:
        """Start the thread. The engine calls this before the first record that has a callback."""
        self._settlements = settlements
        self._thread = threading.Thread(target=self._run, name="pybroker-deliveries", daemon=True)
        self._thread.start()

    def wait(self, timeout_s: float) -> None:
        """Wait until the callbacks of all completed records have returned; DeliveryError after the timeout.

        Returns at once inside a callback, which would wait for itself.
        """
        if self._thread is None or self._settlements is None or threading.current_thread() is self._thread:
            return
        with self._round:
            wanted = self._wanted = self._begun + 1
        self._settlements.rouse()
        with self._round:
            if not self._round.wait_for(lambda: self._done >= wanted or self._ends, timeout_s):
                raise DeliveryError(f"delivery callbacks have not returned within {timeout_s:.3f} s")

    def end(self, timeout_s: float | None = None) -> None:
        """End the thread when its callbacks have returned; wait for it for at most `timeout_s`."""
        self._ends = True
        if self._thread is not None and self._settlements is not None:
            self._settlements.rouse()
            if threading.current_thread() is not self._thread:
                self._thread.join(timeout_s)

    def _run(self) -> None:
        assert self._settlements is not None
        news = select.poll()
        news.register(self._settlements.descriptor(), select.POLLIN)
        while True:
            with self._round:
                self._begun += 1
                ends = self._ends
            ends = not self._call_decided(self._settlements) or ends
            with self._round:
                self._done = self._begun
                self._ends = self._ends or ends
                waits = self._wanted <= self._begun
                self._round.notify_all()
            if ends:
                return
            if waits:
                news.poll()

    @staticmethod
    def _call_decided(settlements: native.Settlements) -> bool:
        """Call the callbacks of completed records; false when no more can follow. Keeps no reference to any of them."""
        completed = settlements.take()
        for callbacks, rows, errors in completed or ():
            for number, (callback, row) in enumerate(zip(callbacks, rows, strict=True)):
                call(callback, None if errors is None else errors[number], as_metadata(row))
        return completed is not None
