"""A producer of a load on the native client: paced by a schedule, its records made and stamped by the engine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import cycle

from pybroker.client import ClientError, KeyedStamps, Producer
from pybroker_spark.load.clients import Clock, Orders, Sample
from pybroker_spark.load.plan import ProducerPlan
from pybroker_spark.load.schedule import Portion, Schedule

_STRIDE = 10_000
"""Records handed to the engine between two looks at the clock."""
_STRIDE_BYTES = 1024 * 1024
_LONGEST_NAP_S = 0.05
_FLUSH_S = 0.1
_PATIENCE_S = 5.0
"""For the last acknowledgements of a load that is told to stop."""


class NativeProducer:
    """One producer by its plan; `number` is what its stamps say."""

    def __init__(self, plan: ProducerPlan, number: int) -> None:
        self._plan, self._number = plan, number
        self._producer = Producer(plan.bootstrap_servers, plan.properties)
        self._round: Iterator[int] = cycle(plan.partitions or (-1,))
        self._sequences = dict.fromkeys(plan.partitions, 0)
        self._keyed = KeyedStamps(plan.keys, plan.skew, number) if plan.keys else None
        self._sent = 0
        self.records = 0
        self.end_s = 0.0
        self.steady_s: float | None = None
        self.timed_out = False
        self.rebalance_s = 0.0

    def prepare(self) -> None:
        """Learn the topic's partitions; the way to their leaders is open then."""
        self._producer.partitions(self._plan.topic)

    def run(self, clock: Clock, orders: Orders) -> None:
        """Send what is due until nothing is any more, then wait for every acknowledgement."""
        plan = self._plan
        schedule = Schedule(plan.steps, plan.records)
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
            else:
                time.sleep(min(max(portion.wait_s, plan.nap_s), _LONGEST_NAP_S))
        self._drain(orders)
        self.end_s = clock.elapsed()

    def _warm_up_is_over(self, elapsed_s: float) -> bool:
        return self._sent >= self._plan.warm_up_records and elapsed_s >= self._plan.warm_up_s

    def _begin_steady_state(self, elapsed_s: float) -> None:
        self._producer.native.begin_phase(1)
        self.steady_s = elapsed_s

    def _send(self, portion: Portion, clock: Clock) -> None:
        plan, count = self._plan, portion.count
        due = None if portion.first_s is None else (clock.wall_us(portion.first_s), portion.every_s * 1e6)
        send = self._producer.native
        if self._keyed is not None:
            self._keyed.send(send, plan.topic, self._number, plan.record_size, count, due)
        elif plan.stamped:
            partition = next(self._round)
            first = self._sequences[partition]
            send.send_stamped(plan.topic, partition, self._number, first, plan.record_size, count, due)
            self._sequences[partition] = first + count
        else:
            send.send_random_letters(plan.topic, next(self._round), plan.record_size, count, due)
        self._sent += count

    def _drain(self, orders: Orders) -> None:
        # The engine gives every record up after delivery.timeout.ms, so that this ends, an order to stop sooner.
        patience, drained = _PATIENCE_S, False
        while patience > 0 and not drained:
            try:
                self._producer.flush(_FLUSH_S)
                drained = True
            except ClientError:
                patience -= _FLUSH_S if orders.stopped.is_set() else 0

    def sample(self, phase: int) -> Sample:
        """The engine's window and histogram of what is new."""
        tally, histogram = self._producer.native.take_interval(phase)
        self.records += tally.records
        return Sample(tally.records, tally.bytes, tally.failed, tally.latency_sum_us, tally.latency_max_us, histogram)

    def outcomes(self) -> list[tuple[str, int, int, int]]:
        """By partition, as the engine counts."""
        return self._producer.native.outcomes()

    def first_failure(self) -> str:
        """What the first record that was given up was given up for; empty when none was."""
        try:
            self._producer.native.raise_failure()
        except ClientError as failure:
            return str(failure)
        return ""

    def close(self) -> None:
        """End at once."""
        self._producer.close(0.0)
