"""The interface of a load's clients, independent of their library."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Protocol

from pybroker.client import LatencyHistogram
from pybroker_spark.disturbance import Disturbance


@dataclass(slots=True)
class Sample:
    """Records acknowledged or read since the last sample."""

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
    """Seconds since the common start of all tasks, by wall clock; monotonic from then on."""

    def __init__(self, start_at: float) -> None:
        self.start_at = start_at
        self._begun = time.monotonic() + (start_at - time.time())

    def elapsed(self) -> float:
        """Return the seconds since the start; below zero before it."""
        return time.monotonic() - self._begun

    def wall_us(self, elapsed_s: float) -> int:
        """Return that time in microseconds since the epoch."""
        return round((self.start_at + elapsed_s) * 1e6)


@dataclass(slots=True)
class Orders:
    """The driver's orders to a running client."""

    stopped: threading.Event = field(default_factory=threading.Event)
    reason: str = ""
    """The reason to stop."""
    until: dict[tuple[str, int], int] | None = None
    """By topic and partition, the offset up to which a consumer reads before it ends."""


class Client(Protocol):
    """One producer or consumer. `run` has a thread of its own; `sample` and `outcomes` are called from another."""

    records: int
    """Records acknowledged or read, by the last sample."""
    end_s: float
    """Time of the last read, or of the last wait for an acknowledgement."""
    steady_s: float | None
    timed_out: bool
    rebalance_s: float

    def prepare(self) -> None:
        """Connect, and load the metadata needed for the start."""

    def run(self, clock: Clock, orders: Orders) -> None:
        """Run until the plan is complete or the orders stop it. Then every record is acknowledged or failed."""

    def sample(self, phase: int) -> Sample:
        """Return the new counts of a phase (`interval.PHASES`) since the last call."""

    def outcomes(self) -> list[tuple[str, int, int, int]]:
        """Return (topic, partition, acknowledged, failed) of a producer."""

    def first_failure(self) -> str:
        """Return the error of a producer's first failed record; empty without one."""

    def disturbance(self) -> Disturbance | None:
        """Return the effects of broker failures; None where the library does not report them."""

    def close(self) -> None:
        """Close at once; unacknowledged records fail."""
