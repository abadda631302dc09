"""A load's producer on the native client: paced by a schedule, its records generated and stamped by the engine."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

from pybroker.client import ClientError, KeyedStamps, LoadGenerator, Producer, TransactionAbortableError
from pybroker_spark.disturbance import Disturbance
from pybroker_spark.load.clients import Clock, Orders, Sample
from pybroker_spark.load.pacing import PacedProducer
from pybroker_spark.load.plan import ProducerPlan
from pybroker_spark.load.schedule import Portion

_FLUSH_S = 0.1
_PATIENCE_S = 5.0
"""Timeout of the last acknowledgements of a load that is ordered to stop."""


class NativeProducer(PacedProducer):
    """One producer by its plan; `number` is its number in stamps."""

    def __init__(self, plan: ProducerPlan, number: int) -> None:
        super().__init__(plan)
        self._number = number
        self._producer = Producer(plan.bootstrap_servers, plan.properties)
        self._load = LoadGenerator(self._producer)
        self._round: Iterator[int] = cycle(plan.partitions or (-1,))
        self._sequences = dict.fromkeys(plan.partitions, 0)
        self._keyed = KeyedStamps(plan.keys, plan.skew, number) if plan.keys else None

    def prepare(self) -> None:
        """Load the topic's partitions; the connections to their leaders are open then. Raises ClientError."""
        self._producer.partitions(self._plan.topic)
        if self._plan.is_transactional:
            self._producer.init_transactions()

    def _begin_steady_state(self, elapsed_s: float) -> None:
        self._load.begin_phase(1)
        super()._begin_steady_state(elapsed_s)

    def _send(self, portion: Portion, clock: Clock) -> None:
        plan, count = self._plan, portion.count
        due = None if portion.first_s is None else (clock.wall_us(portion.first_s), portion.every_s * 1e6)
        send = self._load
        if self._keyed is not None:
            self._keyed.send(self._producer, plan.topic, self._number, plan.record_size, count, due)
        elif plan.stamped:
            partition = next(self._round)
            first = self._sequences[partition]
            send.send_stamped(plan.topic, partition, self._number, first, plan.record_size, count, due)
            self._sequences[partition] = first + count
        else:
            send.send_random_letters(plan.topic, next(self._round), plan.record_size, count, due)

    def _drain(self, orders: Orders) -> None:
        # The engine fails every record after delivery.timeout.ms, which ends this loop unless a stop order does.
        patience, drained = _PATIENCE_S, False
        while patience > 0 and not drained:
            try:
                self._producer.flush(_FLUSH_S)
                drained = True
            except ClientError:
                patience -= _FLUSH_S if orders.stopped.is_set() else 0

    def _begin_transaction(self) -> None:
        self._producer.begin_transaction()

    def _commit_transaction(self, timeout_s: float) -> None:
        self._producer.commit_transaction(timeout_s)

    def _maybe_abort_transaction(self, error: Exception, timeout_s: float) -> None:
        if isinstance(error, TransactionAbortableError):
            self._producer.abort_transaction(timeout_s)

    def sample(self, phase: int) -> Sample:
        """Return the engine's window and histogram of new acknowledgements."""
        tally, histogram = self._load.take_interval(phase)
        self.records += tally.records
        return Sample(tally.records, tally.bytes, tally.failed, tally.latency_sum_us, tally.latency_max_us, histogram)

    def outcomes(self) -> list[tuple[str, int, int, int]]:
        """Return the engine's counts by partition."""
        return self._producer.outcomes()

    def first_failure(self) -> str:
        """Return the error of the first failed record; empty without one."""
        try:
            self._producer.raise_failure()
        except ClientError as failure:
            return str(failure)
        return ""

    def disturbance(self) -> Disturbance:
        """Return the engine's values."""
        return Disturbance.of_metrics(self._producer.metrics())

    def close(self) -> None:
        """Close at once."""
        self._producer.close(0.0)
