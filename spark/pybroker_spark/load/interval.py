"""One row of a measurement: the records of a client in about a second, for messages and files."""

from __future__ import annotations

import base64
import builtins
from dataclasses import asdict, dataclass
from typing import Any, Self

from pybroker.client import LatencyHistogram

WARM_UP, STEADY = "warm-up", "steady"
PHASES = (WARM_UP, STEADY)
"""Phase names by the native producer's phase number."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The records of one client from `begin_s` to `end_s`, in seconds from the common start."""

    client: int
    task: int
    role: str
    """`producer` or `consumer`."""
    topic: str
    phase: str
    begin_s: float
    end_s: float
    records: int
    """Number of records acknowledged, or read."""
    bytes: int
    """Bytes of keys and values."""
    failed: int
    """Failed records of a producer; of a consumer, records without an expected stamp."""
    latency_sum_us: int
    latency_max_us: int
    histogram: builtins.bytes
    """The latencies, in HdrHistogram's V2 encoding; empty where none were measured."""

    def latencies(self) -> LatencyHistogram:
        """Return the histogram."""
        return LatencyHistogram(self.histogram or None)

    def to_message(self) -> dict[str, Any]:
        """Return a dictionary that can be encoded as JSON; the histogram is base64 text."""
        return {**asdict(self), "histogram": base64.b64encode(self.histogram).decode()}

    @classmethod
    def from_message(cls, message: dict[str, Any]) -> Self:
        """Build an interval from the result of `to_message`."""
        return cls(**{**message, "histogram": base64.b64decode(message["histogram"])})
