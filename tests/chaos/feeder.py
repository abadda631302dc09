"""A writer of input records, beside the faults.

Owns a librdkafka producer and its thread. Must not know what reads the records.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from confluent_kafka import Producer

from tests.support.conditions import wait_until

RATE = 200
"""Input records a second."""
_CALM_S = 120.0


class Feeder(threading.Thread):
    """Writes numbered records, until it is stopped."""

    def __init__(self, bootstrap: str, topic: str, record: Callable[[int], dict[str, Any]]) -> None:
        """`record` returns the arguments of `produce` for a number."""
        super().__init__(daemon=True)
        self._topic = topic
        self._record = record
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        self._stopped = threading.Event()
        self.sent = 0

    def run(self) -> None:
        """Write records at the rate."""
        while not self._stopped.wait(1 / RATE):
            self._producer.produce(self._topic, **self._record(self.sent))
            self._producer.poll(0)
            self.sent += 1

    def await_input(self, seconds: float) -> None:
        """Wait until it has written the records of so many seconds."""
        wanted = self.sent + RATE * seconds
        wait_until(lambda: self.sent >= wanted, within=60, what=lambda: f"{self.sent} of {wanted:.0f} records written")

    def stop(self) -> None:
        """Stop, and wait until all records are acknowledged."""
        self._stopped.set()
        self.join()
        assert self._producer.flush(_CALM_S) == 0
