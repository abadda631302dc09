"""The result of a load: sums and exact percentiles, in total and by client. Pure functions of the reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pybroker.client import LatencyHistogram
from pybroker_spark.disturbance import Disturbance
from pybroker_spark.load.board import DONE, Board, Standing
from pybroker_spark.load.interval import PHASES, STEADY, Interval
from pybroker_spark.load.plan import LoadPlan


@dataclass(frozen=True, slots=True)
class Total:
    """Sums over one or several clients in a period of time."""

    records: int
    bytes: int
    failed: int
    seconds: float
    latency_sum_us: int
    latency_max_us: int
    latencies: LatencyHistogram
    """The merged histogram: histograms of one shape are added, so its percentiles are those of all clients."""

    @property
    def records_per_second(self) -> float:
        """Return the rate; 0 where no time has passed."""
        return self.records / self.seconds if self.seconds > 0 else 0.0


def total(intervals: Sequence[Interval], seconds: float) -> Total:
    """Return the sum of these intervals. `seconds` is the duration that the sum covers."""
    latencies = LatencyHistogram()
    for row in intervals:
        if row.histogram:
            latencies.merge(row.latencies())
    return Total(
        sum(row.records for row in intervals),
        sum(row.bytes for row in intervals),
        sum(row.failed for row in intervals),
        seconds,
        sum(row.latency_sum_us for row in intervals),
        max((row.latency_max_us for row in intervals), default=0),
        latencies,
    )


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A producer's record counts for a partition. If none failed, sequences 0 to `acknowledged` - 1 are in the log."""

    producer: int
    """The producer number in stamps."""
    client: int
    topic: str
    partition: int
    acknowledged: int
    failed: int
    complete: bool
    """Whether the producer finished its load. A lost producer may have more acknowledged records than it reported."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a load that has ended."""

    plan: LoadPlan
    clients: tuple[Standing, ...]
    intervals: tuple[Interval, ...]
    started_at: float
    """The common start, in seconds since the epoch; 0: the load did not start."""
    clock_differences_s: dict[int, float]
    reason: str
    """The reason of an early end; empty without one."""

    @classmethod
    def of(cls, board: Board, started_at: float, reason: str) -> Result:
        """Build the result from the final board."""
        clients, intervals = tuple(board.clients), tuple(board.intervals)
        return cls(board.plan, clients, intervals, started_at, dict(board.clock_differences_s), reason)

    def is_whole(self) -> bool:
        """Return whether every client finished its load, and no record of a producer failed."""
        return all(c.state == DONE for c in self.clients) and not any(
            row.failed for row in self.intervals if row.role == "producer"
        )

    def rows(self, role: str, phases: Sequence[str] = PHASES, client: int | None = None) -> list[Interval]:
        """Return the intervals of a role, or of one client."""
        return [
            row
            for row in self.intervals
            if row.role == role and row.phase in phases and (client is None or row.client == client)
        ]

    def of_role(self, role: str) -> list[Standing]:
        """Return the producers, or the consumers."""
        return [standing for standing in self.clients if standing.role == role]

    def disturbance(self, role: str) -> Disturbance:
        """Return the effects of broker failures on a role's clients: the longest gap, the sums of the other values."""
        return Disturbance.of_all(it.disturbance for it in self.of_role(role) if it.disturbance is not None)

    def total(self, role: str) -> Total:
        """Return the sums from the start to the last record of the last client."""
        return total(self.rows(role), max((c.end_s for c in self.of_role(role)), default=0.0))

    def steady(self, role: str) -> Total:
        """Return the sums without the warm-up: from the time at which the first client ended its warm-up."""
        clients = [c for c in self.of_role(role) if c.steady_s is not None]
        begin = min((c.steady_s for c in clients if c.steady_s is not None), default=0.0)
        end = max((c.end_s for c in clients), default=begin)
        return total(self.rows(role, (STEADY,)), end - begin)

    def of_client(self, client: Standing) -> Total:
        """Return the sums of one client."""
        return total(self.rows(client.role, client=client.client), client.end_s)

    def acknowledged(self) -> list[Acknowledged]:
        """Return the counts by producer, topic and partition, for an audit."""
        return [
            Acknowledged(
                self.plan.producer_number(c.client),
                c.client,
                topic,
                partition,
                outcome.acknowledged,
                outcome.failed,
                c.state == DONE,
            )
            for c in self.of_role("producer")
            for (topic, partition), outcome in sorted(c.outcomes.items())
        ]
