"""The common part of a load's producers: the loop from a plan's schedule to sent records.

Owns when records are passed to a client, when the warm-up ends, and when a transaction begins and ends. Must not
know a client's library: each producer implements sending, waiting for acknowledgements, and its counts.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod

from pybroker_spark.load.clients import Clock, Orders
from pybroker_spark.load.plan import ProducerPlan
from pybroker_spark.load.schedule import Portion, Schedule

_STRIDE = 10_000
"""Maximum records passed to a client between two checks of the clock."""
_STRIDE_BYTES = 1024 * 1024
_LONGEST_NAP_S = 0.05
_COMMIT_S = 120.0
"""Timeout of a commit whose records may wait for a broker; the engine fails them sooner."""
_LAST_COMMIT_S = 5.0
"""Timeout of the commit of a load that is ordered to stop, and of an abort."""


class PacedProducer(ABC):
    """One producer by its plan: `clients.Client` except the parts that depend on the library."""

    def __init__(self, plan: ProducerPlan) -> None:
        self._plan = plan
        self._sent = 0
        self.records = 0
        self.end_s = 0.0
        self.steady_s: float | None = None
        self._transaction_s: float | None = None
        """Start of the open transaction, by the load's clock."""
        self.timed_out = False
        self.rebalance_s = 0.0

    def run(self, clock: Clock, orders: Orders) -> None:
        """Send due records until the schedule ends, then wait for every acknowledgement.

        Raises the library's errors; a transaction that cannot be committed is aborted first, so that readers do not
        wait for `transaction.timeout.ms`.
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
        """Begin a transaction where the plan has transactions and none is open."""
        if self._plan.is_transactional and self._transaction_s is None:
            self._begin_transaction()
            self._transaction_s = elapsed_s

    def _maybe_commit_transaction(self, begun_s: float, timeout_s: float) -> None:
        """Commit an open transaction that began at that time or earlier."""
        if self._transaction_s is not None and self._transaction_s <= begun_s:
            self._commit_transaction(timeout_s)
            self._transaction_s = None

    def _warm_up_is_over(self, elapsed_s: float) -> bool:
        return self._sent >= self._plan.warm_up_records and elapsed_s >= self._plan.warm_up_s

    def _begin_steady_state(self, elapsed_s: float) -> None:
        """Count the records sent from now on in phase 1."""
        self.steady_s = elapsed_s

    def _nap(self, seconds: float) -> None:
        """Wait, since nothing is due for so long."""
        time.sleep(seconds)

    @abstractmethod
    def _send(self, portion: Portion, clock: Clock) -> None:
        """Pass these records to the client; waits while its memory is full."""

    @abstractmethod
    def _drain(self, orders: Orders) -> None:
        """Wait until every record is acknowledged or failed."""

    @abstractmethod
    def _begin_transaction(self) -> None:
        """Begin a transaction; `prepare` has initialised the client."""

    @abstractmethod
    def _commit_transaction(self, timeout_s: float) -> None:
        """Commit the open transaction. Raises the library's errors; then consumers read none of its records."""

    @abstractmethod
    def _maybe_abort_transaction(self, error: Exception, timeout_s: float) -> None:
        """Abort the open transaction after an error that requires it. Raises a more specific error, such as fencing."""
