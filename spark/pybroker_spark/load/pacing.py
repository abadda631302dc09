"""What producers of a load share, whichever client is inside: the loop from a plan's schedule to records sent.

Owns when how many records are handed to a client, and when its warm-up is over. Knows no client's library: how records
are sent, how their acknowledgements are awaited and what they come to is each producer's own.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

from pybroker_spark.load.clients import Clock, Orders
from pybroker_spark.load.plan import ProducerPlan
from pybroker_spark.load.schedule import Portion, Schedule

_STRIDE = 10_000
"""Records handed to a client between two looks at the clock."""
_STRIDE_BYTES = 1024 * 1024
_LONGEST_NAP_S = 0.05


class PacedProducer(ABC):
    """One producer by its plan: `clients.Client` but for what depends on the library."""

    def __init__(self, plan: ProducerPlan) -> None:
        self._plan = plan
        self._sent = 0
        self.records = 0
        self.end_s = 0.0
        self.steady_s: float | None = None
        self.timed_out = False
        self.rebalance_s = 0.0

    def run(self, clock: Clock, orders: Orders) -> None:
        """Send what is due until nothing is any more, then wait for every acknowledgement."""
        plan, schedule = self._plan, Schedule(self._plan.steps, self._plan.records)
        stride = max(1, min(_STRIDE, _STRIDE_BYTES // plan.record_size))
        if not plan.warm_up_records and not plan.warm_up_s:
            self._begin_steady_state(0.0)
        while not orders.stopped.is_set():
            elapsed = clock.elapsed()
            if self.steady_s is None and self._warm_up_is_over(elapsed):
                self._begin_steady_state(elapsed)
            most = stride if self._sent >= plan.warm_up_records else min(stride, plan.warm_up_records - self._sent)
            portion = schedule.take(elapsed, most)
            if portion is None:
                break
            if portion.count:
                self._send(portion, clock)
                self._sent += portion.count
            else:
                self._nap(min(max(portion.wait_s, plan.nap_s), _LONGEST_NAP_S))
        self._drain(orders)
        self.end_s = clock.elapsed()

    def _warm_up_is_over(self, elapsed_s: float) -> bool:
        return self._sent >= self._plan.warm_up_records and elapsed_s >= self._plan.warm_up_s

    def _begin_steady_state(self, elapsed_s: float) -> None:
        """What is sent from now on belongs to phase 1."""
        self.steady_s = elapsed_s

    def _nap(self, seconds: float) -> None:
        """Nothing is due for so long."""
        time.sleep(seconds)

    @abstractmethod
    def _send(self, portion: Portion, clock: Clock) -> None:
        """Hand these records to the client; waits while its memory is full."""

    @abstractmethod
    def _drain(self, orders: Orders) -> None:
        """Wait until the fate of every record is known."""
