"""What every client of a load can do, whichever library it is made of."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Protocol

from pybroker.client import LatencyHistogram
from pybroker_spark.disturbance import Disturbance


@dataclass(slots=True)
class Sample:
    """What was acknowledged or read since the last sample."""

    records: int = 0
    bytes: int = 0
    failed: int = 0
    latency_sum_us: int = 0
    latency_max_us: int = 0
    histogram: LatencyHistogram | None = None

    def is_empty(self) -> bool:
        """Whether there is nothing to report."""
        return not self.records and not self.failed


class Clock:
    """Seconds since the start that all tasks have agreed on, by wall clock; steady from then on."""

    def __init__(self, start_at: float) -> None:
        self.start_at = start_at
        self._begun = time.monotonic() + (start_at - time.time())

    def elapsed(self) -> float:
        """Below zero before the start."""
        return time.monotonic() - self._begun

    def wall_us(self, elapsed_s: float) -> int:
        """That moment, in microseconds since the epoch."""
        return round((self.start_at + elapsed_s) * 1e6)


@dataclass(slots=True)
class Orders:
    """What the driver orders a running client to do."""

    stopped: threading.Event = field(default_factory=threading.Event)
    reason: str = ""
    """Why it is to stop."""
    until: dict[tuple[str, int], int] | None = None
    """By topic and partition, the offset that a consumer reads to before it ends."""


class Client(Protocol):
    """One producer or consumer. `run` has a thread of its own; `sample` and `outcomes` are asked from another."""

    records: int
    """Acknowledged or read, by the last sample."""
    end_s: float
    """When the last record was read, or the last acknowledgement awaited."""
    steady_s: float | None
    timed_out: bool
    rebalance_s: float

    def prepare(self) -> None:
        """Connect, and find what is needed before the start."""

    def run(self, clock: Clock, orders: Orders) -> None:
        """Load until the plan is through or the orders say stop; every record's fate is known then."""

    def sample(self, phase: int) -> Sample:
        """What is new in a phase (`interval.PHASES`) since the last call."""

    def outcomes(self) -> list[tuple[str, int, int, int]]:
        """(topic, partition, acknowledged, failed) of a producer."""

    def first_failure(self) -> str:
        """What a producer's first record that was given up was given up for; empty when none was."""

    def disturbance(self) -> Disturbance | None:
        """What it has met of brokers that went away; None where its library does not say."""

    def close(self) -> None:
        """End at once; what is not acknowledged is given up."""
