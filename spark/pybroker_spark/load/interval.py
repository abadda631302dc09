"""One row of a measurement: what a client did in a second or so, as it travels to the driver and into files."""

from __future__ import annotations

import base64
import builtins
from dataclasses import asdict, dataclass
from typing import Any, Self

from pybroker.client import LatencyHistogram

WARM_UP, STEADY = "warm-up", "steady"
PHASES = (WARM_UP, STEADY)
"""By the number that the native producer has for each."""


@dataclass(frozen=True, slots=True)
class Interval:
    """What one client did from `begin_s` to `end_s`, in seconds from the start that all agreed on."""

    client: int
    task: int
    role: str
    """`producer` or `consumer`."""
    topic: str
    phase: str
    begin_s: float
    end_s: float
    records: int
    """Acknowledged, or read."""
    bytes: int
    """Of keys and values."""
    failed: int
    """Records given up; of a consumer, those without a stamp where one was looked for."""
    latency_sum_us: int
    latency_max_us: int
    histogram: builtins.bytes
    """The latencies, in HdrHistogram's V2 encoding; empty where none were taken."""

    def latencies(self) -> LatencyHistogram:
        """The histogram."""
        return LatencyHistogram(self.histogram or None)

    def to_message(self) -> dict[str, Any]:
        """As JSON can carry it."""
        return {**asdict(self), "histogram": base64.b64encode(self.histogram).decode()}

    @classmethod
    def from_message(cls, message: dict[str, Any]) -> Self:
        """What `to_message` gave."""
        return cls(**{**message, "histogram": base64.b64decode(message["histogram"])})
