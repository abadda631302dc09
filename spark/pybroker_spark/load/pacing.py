"""What producers of a load share, whichever client is inside: the loop from a plan's schedule to records sent.

Owns when how many records are handed to a client, when its warm-up is over, and when a transaction begins and ends.
Knows no client's library: how records are sent, how their acknowledgements are awaited and what they come to is each
producer's own.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

from pybroker_spark.load.clients import Clock, Orders
from pybroker_spark.load.plan import ProducerPlan
from pybroker_spark.load.schedule import Portion, Schedule

_STRIDE = 10_000
"""Records handed to a client between two checks of the clock."""
_STRIDE_BYTES = 1024 * 1024
_LONGEST_NAP_S = 0.05
_COMMIT_S = 120.0
"""For a commit whose records may have to wait for a broker; the engine gives them up sooner."""
_LAST_COMMIT_S = 5.0
"""For the commit of a load that gets the order to stop, and for an abort."""


class PacedProducer(ABC):
    """One producer by its plan: `clients.Client` but for what depends on the library."""

    def __init__(self, plan: ProducerPlan) -> None:
        self._plan = plan
        self._sent = 0
        self.records = 0
        self.end_s = 0.0
        self.steady_s: float | None = None
        self._transaction_s: float | None = None
        """When the open transaction began, by the load's clock."""
        self.timed_out = False
        self.rebalance_s = 0.0

    def run(self, clock: Clock, orders: Orders) -> None:
        """Send what is due until nothing is any more, then wait for every acknowledgement.

        Raises what the client's library raises; a transaction that cannot be committed is aborted before, so that
        readers do not wait for `transaction.timeout.ms`.
        """
        try:
            self._send_all(clock, orders)
        except Exception as error:
            if self._transaction_s is not None:
                self._maybe_abort_transaction(error, _LAST_COMMIT_S)
            raise

    def _send_all(self, clock: Clock, orders: Orders) -> None:
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
                self._maybe_begin_transaction(elapsed)
                self._send(portion, clock)
                self._sent += portion.count
            else:
                self._nap(min(max(portion.wait_s, plan.nap_s), _LONGEST_NAP_S))
            self._maybe_commit_transaction(clock.elapsed() - plan.transaction_s, _COMMIT_S)
        self._drain(orders)
        self._maybe_commit_transaction(clock.elapsed(), _LAST_COMMIT_S if orders.stopped.is_set() else _COMMIT_S)
        self.end_s = clock.elapsed()

    def _maybe_begin_transaction(self, elapsed_s: float) -> None:
        """Before records are sent, where the plan has transactions and none is open."""
        if self._plan.is_transactional and self._transaction_s is None:
            self._begin_transaction()
            self._transaction_s = elapsed_s

    def _maybe_commit_transaction(self, begun_s: float, timeout_s: float) -> None:
        """Where one is open that began then or earlier."""
        if self._transaction_s is not None and self._transaction_s <= begun_s:
            self._commit_transaction(timeout_s)
            self._transaction_s = None

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

    @abstractmethod
    def _begin_transaction(self) -> None:
        """Begin one; `prepare` has made the client ready for it."""

    @abstractmethod
    def _commit_transaction(self, timeout_s: float) -> None:
        """Commit the open one with all that was sent. Raises what the client's library raises; nothing is read then."""

    @abstractmethod
    def _maybe_abort_transaction(self, error: Exception, timeout_s: float) -> None:
        """Abort the open one after an error that asks for it. Raises what says more of it: that it was fenced."""
