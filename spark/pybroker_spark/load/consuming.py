"""A load's consumer on the native client: counts and discards records, and measures latencies of stamped ones."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from pybroker.client import Consumer, Fetcher, RebalanceListener, TopicPartition
from pybroker_spark.disturbance import Disturbance
from pybroker_spark.load.clients import Clock, Orders, Sample
from pybroker_spark.load.plan import ConsumerPlan

_WAIT_S = 0.1


class NativeConsumer:
    """One consumer by its plan: a fetcher of assigned partitions, or a member of a group."""

    def __init__(self, plan: ConsumerPlan) -> None:
        self._plan = plan
        self._fetcher: Fetcher | None = None
        self._member: Consumer | None = None
        self._lock = threading.Lock()
        self._phases = (Sample(), Sample())
        """New counts of each phase; the engine counts stamped records, until `_collect`."""
        self.records = 0
        self._read = 0
        self.end_s = 0.0
        self.steady_s: float | None = None
        self.timed_out = False
        self.rebalance_s = 0.0
        self._without_since: float | None = None
        self._watch = _Watch(self)
        self._joining: threading.Thread | None = None
        """Polls until the start, where members join before it."""
        self._starts = threading.Event()

    def prepare(self) -> None:
        """Assign or subscribe. The engine connects to the partitions at once, but takes no record before the start."""
        plan = self._plan
        if plan.group_topics:
            self._member = Consumer(plan.bootstrap_servers, plan.properties)
            if plan.joins_before_start:
                self._subscribe(None)
                self._joining = threading.Thread(target=self._poll_until_start, name="load-joining", daemon=True)
                self._joining.start()
        else:
            self._fetcher = Fetcher(plan.bootstrap_servers, plan.properties)

    def run(self, clock: Clock, orders: Orders) -> None:
        """Read until enough records have arrived, none have arrived for too long, or the orders stop it."""
        while (early := -clock.elapsed()) > 0:
            time.sleep(min(early, _WAIT_S))
        if self._joining is not None:
            self._stop_joining()
            self._watch.clock = clock
        else:
            self._begin(clock)
        if not self._plan.warm_up_s:
            self.steady_s = 0.0
        last = clock.elapsed()
        while not orders.stopped.is_set() and not self._is_through(orders):
            records, size = self._count()
            elapsed = clock.elapsed()
            if records:
                self._note(records, size)
                self.end_s = last = elapsed
            elif elapsed - last > self._plan.idle_s:
                self.timed_out = True
                self.end_s = elapsed
                return
            if self.steady_s is None and elapsed >= self._plan.warm_up_s:
                with self._lock:
                    self._collect()
                    self.steady_s = elapsed

    def _note(self, records: int, size: int) -> None:
        self._read += records
        if not self._plan.stamped:
            with self._lock:
                sample = self._phases[self._phase()]
                sample.records += records
                sample.bytes += size

    def _phase(self) -> int:
        return 0 if self.steady_s is None else 1

    def _poll_until_start(self) -> None:
        """Poll so that the member joins and takes part in rebalances; nothing is written yet."""
        while not self._starts.is_set():
            self._count()

    def _stop_joining(self) -> None:
        if self._joining is not None:
            self._starts.set()
            self._joining.join()

    def _subscribe(self, clock: Clock | None) -> None:
        assert self._member is not None
        self._watch.clock = clock
        self._without_since = 0.0 if clock is None else clock.elapsed()
        self._member.subscribe(list(self._plan.group_topics), listener=self._watch)

    def _begin(self, clock: Clock) -> None:
        if self._member is not None:
            self._subscribe(clock)
        elif self._fetcher is not None:
            self._fetcher.assign({TopicPartition(*where): start for where, start in self._plan.assigned.items()})

    def _count(self) -> tuple[int, int]:
        if self._member is not None:
            return self._member.count(_WAIT_S, stamped=self._plan.stamped)
        assert self._fetcher is not None
        return self._fetcher.native.count(_WAIT_S, self._plan.stamped) or (0, 0)

    def _is_through(self, orders: Orders) -> bool:
        if self._plan.records is not None and self._read >= self._plan.records:
            return True
        if orders.until is None:
            return False
        if self._member is None:
            return all(offset >= orders.until.get(where, 0) for where, offset in self._positions().items())
        # A member that has not joined yet may still be assigned partitions.
        mine = () if self._without_since is not None else self._member.assignment()
        ends = {each: orders.until.get((each.topic, each.partition), 0) for each in mine}
        return self._without_since is None and all(self._member.position(each) >= end for each, end in ends.items())

    def _positions(self) -> dict[tuple[str, int], int]:
        assert self._fetcher is not None
        at = {(topic, partition): offset for topic, partition, offset in self._fetcher.native.positions()}
        # Before the first record of a partition its position is the start offset of the plan.
        return {where: at[where] if at.get(where, -1) >= 0 else begin for where, begin in self._plan.assigned.items()}

    def lose_partitions(self, elapsed_s: float) -> None:
        """Start to measure the time without partitions."""
        self._without_since = elapsed_s

    def have_partitions(self, elapsed_s: float) -> None:
        """Stop measuring it."""
        if self._without_since is not None:
            self.rebalance_s += elapsed_s - self._without_since
            self._without_since = None

    def sample(self, phase: int) -> Sample:
        """Return the new counts of a phase."""
        with self._lock:
            if phase == self._phase():
                self._collect()
            new = self._phases[phase]
            self._phases = (Sample(), self._phases[1]) if phase == 0 else (self._phases[0], Sample())
        self.records += new.records
        return new

    def _collect(self) -> None:
        """Add the engine's counts of stamped records to the current phase; called with the lock held."""
        native = self._member if self._member is not None else self._fetcher.native if self._fetcher else None
        if not self._plan.stamped or native is None:
            return
        tally, histogram = native.take_arrivals()
        sample = self._phases[self._phase()]
        sample.records += tally.records
        sample.bytes += tally.bytes
        sample.failed += tally.failed
        sample.latency_sum_us += tally.latency_sum_us
        sample.latency_max_us = max(sample.latency_max_us, tally.latency_max_us)
        if sample.histogram is not None:
            histogram.merge(sample.histogram)
        sample.histogram = histogram

    def outcomes(self) -> list[tuple[str, int, int, int]]:
        """Return nothing: a consumer writes no records."""
        return []

    def first_failure(self) -> str:
        """Return nothing: a consumer raises its errors."""
        return ""

    def disturbance(self) -> Disturbance | None:
        """Return the engine's values."""
        client = self._member or self._fetcher
        return None if client is None else Disturbance.of_metrics(client.metrics())

    def close(self) -> None:
        """Leave the group, and end."""
        self._stop_joining()
        if self._member is not None:
            self._member.close()
        if self._fetcher is not None:
            self._fetcher.close()


class _Watch(RebalanceListener):
    """Sums up the time without partitions, from the start and from each revocation on, as Kafka's tool does."""

    def __init__(self, consumer: NativeConsumer) -> None:
        self._consumer = consumer
        self.clock: Clock | None = None
        """None before the start, when the time is not measured."""

    def _elapsed(self) -> float:
        return 0.0 if self.clock is None else self.clock.elapsed()

    def on_revoked(self, _partitions: Sequence[TopicPartition], /) -> None:
        self._consumer.lose_partitions(self._elapsed())

    def on_assigned(self, _partitions: Sequence[TopicPartition], /) -> None:
        self._consumer.have_partitions(self._elapsed())
